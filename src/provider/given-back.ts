/** How a token ends that its holder gave back: with its authorization, and alone where it has none. */
import type { Context } from 'koa';
import type { Revocations } from '../accounts/revocations.ts';
import type { Grants } from './grants.ts';

export interface GivenBackParts {
  readonly grants: Grants;
  readonly revocations: Pick<Revocations, 'note'>;
}

/** @param grantId absent for a machine access token. */
export async function endGivenBack(
  { grants, revocations }: GivenBackParts,
  ctx: Context,
  { value, grantId }: { readonly value: string; readonly grantId: string | undefined },
): Promise<void> {
  ctx.state.grantId = grantId;
  // Nothing is recorded: a machine may get another one the next moment, so it may do what it might.
  if (grantId === undefined) return grants.revokeMachineToken(value);
  await grants.revoke(grantId);
  const origin = { address: ctx.ip, browser: ctx.get('user-agent') };
  revocations.note({ grantId, cause: 'client_revoked', actor: 'client', origin });
}
