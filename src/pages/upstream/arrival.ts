/** Completes a user's visit to a provider: a sign-in, a link, a confirmation or a recovery. */
import type { Context } from 'koa';
import { methodIdOf } from '../../accounts/identities/identities.ts';
import type { ResolveIdentity } from '../../accounts/identities/resolve-identity.ts';
import { passwordLinkPath } from '../../accounts/password-links/link-mail.ts';
import type { PasswordLinks } from '../../accounts/password-links/password-links.ts';
import { proofOf } from '../../provider/browser-sessions.ts';
import type { Standings } from '../../provider/standings.ts';
import type { UpstreamPerson, UpstreamProvider } from '../../upstream/upstream-provider.ts';
import type { FirstSignIn } from '../first-sign-in/question.ts';
import { type Notices, requestOrigin, seeOther } from '../page.ts';
import type { BrowserSignIns } from '../sign-in/browser-sign-ins.ts';
import type { ContinueIfSatisfied } from '../sign-in/sign-in-policy.ts';
import type { Purpose, SignInPurpose, UpstreamOutcomes } from '../sign-in/upstream-ways.ts';
import type { WaitingSignIn } from '../sign-in/waiting-sign-in.ts';
import type { Confirm, Link } from './own-account.ts';
import { CONFIRMED, linkedNotice, NOT_ENOUGH } from './words.ts';

/** @param refuse tells the user why the identity is refused. */
export type Arrive = (
  ctx: Context,
  settings: UpstreamProvider['settings'],
  came: { readonly person: UpstreamPerson; readonly purpose: Purpose },
  refuse: (reason: string) => Promise<void>,
) => Promise<void>;

export function createArrival(parts: {
  readonly resolveIdentity: ResolveIdentity;
  readonly link: Link;
  readonly confirm: Confirm;
  readonly standings: Pick<Standings, 'wouldBe'>;
  readonly continueIfSatisfied: ContinueIfSatisfied;
  readonly passwordLinks: Pick<PasswordLinks, 'make'>;
  readonly signIns: Pick<BrowserSignIns, 'signIn' | 'confirm'>;
  readonly firstSignIn: Pick<FirstSignIn, 'path'>;
  readonly waiting: Pick<WaitingSignIn, 'restartOf'>;
  readonly notices: Pick<Notices, 'redirect'>;
  readonly outcomes: UpstreamOutcomes;
}): Arrive {
  const { resolveIdentity, link, confirm, standings, passwordLinks, signIns, firstSignIn } = parts;
  const { waiting, notices, outcomes } = parts;

  async function onwardTo(ctx: Context, { interaction, target }: SignInPurpose): Promise<string> {
    if (interaction === undefined) return target;
    return (await waiting.restartOf(ctx, interaction)) ?? target;
  }

  async function leadBack(ctx: Context, { target }: Purpose): Promise<void> {
    // A target with a query shows a form again: it tells the user itself what to do.
    if (target.includes('?')) return seeOther(ctx, target);
    await notices.redirect(ctx, target, CONFIRMED);
  }

  return async (ctx, settings, { person, purpose }, refuse) => {
    const origin = requestOrigin(ctx);
    if (purpose.to === 'link') {
      const reason = await link(ctx, settings, { person, purpose });
      if (reason !== undefined) return refuse(reason);
      outcomes.cameFromUpstream(settings.id, 'succeeded');
      const onward = await parts.continueIfSatisfied(ctx, person);
      if (onward !== undefined) return seeOther(ctx, onward);
      return notices.redirect(ctx, purpose.target, linkedNotice(settings.label));
    }
    const came =
      purpose.to === 'sign in'
        ? await resolveIdentity(settings, person, origin)
        : await confirm(ctx, settings, { person, purpose });
    if (typeof came === 'string') return refuse(came);
    const { account, isNewLink } = came;
    outcomes.cameFromUpstream(settings.id, 'succeeded');
    if (purpose.to === 'reset') {
      // A weak sign-in must not recover an account that requires a strong one.
      const { is } = await standings.wouldBe({ accountId: account.id, proofs: [proofOf(person, 0)] });
      if (is !== 'free') return notices.redirect(ctx, purpose.target, NOT_ENOUGH);
      const { token } = await passwordLinks.make(account, 'confirmed', origin);
      return seeOther(ctx, passwordLinkPath(token));
    }
    const way = { ...settings, isNewLink };
    if (purpose.to === 'sign in') await signIns.signIn(ctx, account, person, way);
    else if (!(await signIns.confirm(ctx, account, person, way))) return refuse('signed out');
    else if (!isNewLink) return leadBack(ctx, purpose);
    const onward = purpose.to === 'sign in' ? await onwardTo(ctx, purpose) : purpose.target;
    const methodId = methodIdOf(person.issuer);
    seeOther(ctx, isNewLink ? await firstSignIn.path(ctx, account, { methodId, onward }) : onward);
  };
}
