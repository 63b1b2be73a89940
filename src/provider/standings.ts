/** Decides what a session may do under the setting `sign_in.require`. No other file decides this. */
import type { Context } from 'koa';
import { isStrong, type Proof, type UpstreamStrength } from '../accounts/sign-in-strength.ts';
import type { SignInRequirement, StrongSignIns } from '../accounts/strong-sign-ins.ts';
import { requestState } from '../base/request-state.ts';
import type { Queries } from '../storage/queries.ts';

/**
 * `free`: nothing is missing. `warned`: a stronger sign-in will be required from `until` on. `must add`: a stronger
 * sign-in is required, and the user has no strong method, so may only add a first one. `must use`: a stronger sign-in
 * is required, and the user has a strong method, so may only sign in with it.
 */
export type Standing =
  | { readonly is: 'free' }
  | ({ readonly is: 'warned' | 'must add' | 'must use' } & SignInRequirement);

export const FREE: Standing = { is: 'free' };

/** False if the user may only sign out, add a first strong method, or sign in with a strong method. */
export const mayAct = ({ is }: Standing): boolean => is === 'free' || is === 'warned';

interface Proved {
  readonly accountId: string;
  readonly proofs: readonly Proof[];
}

export type Standings = ReturnType<typeof createStandings>;

export function createStandings(
  parts: Pick<StrongSignIns, 'requirementFor' | 'wouldBeRequired'> & {
    readonly providers: readonly UpstreamStrength[];
  },
) {
  const { requirementFor, wouldBeRequired, providers } = parts;
  const asked = requestState<{
    readonly accountId: string;
    readonly requirement: Promise<SignInRequirement | undefined>;
  }>('a sign-in requirement');

  function requirementIn(ctx: Context | undefined, accountId: string) {
    const before = ctx && asked.find(ctx);
    if (before?.accountId === accountId) return before.requirement;
    const requirement = requirementFor(accountId);
    if (ctx) asked.set(ctx, { accountId, requirement });
    return requirement;
  }

  return {
    /** @param ctx if given, the account's requirement is read only once for this request */
    async of({ accountId, proofs }: Proved, ctx?: Context): Promise<Standing> {
      if (isStrong(proofs, providers)) return FREE;
      return standingUnder(await requirementIn(ctx, accountId));
    },

    /** Like `of`, but starts no grace period, for example because the user has not signed in yet. */
    async wouldBe({ accountId, proofs }: Proved, tx?: Queries): Promise<Standing> {
      if (isStrong(proofs, providers)) return FREE;
      return standingUnder(await wouldBeRequired(accountId, tx));
    },
  };
}

function standingUnder(requirement: SignInRequirement | undefined): Standing {
  if (!requirement) return FREE;
  if (!requirement.isOver) return { is: 'warned', ...requirement };
  return { is: requirement.hasStrongMethod ? 'must use' : 'must add', ...requirement };
}

export const byPassword = (accountId: string): Proved => ({ accountId, proofs: [{ by: 'password', at: 0 }] });
