/** Handles a user who returns from a provider, for the purpose for which the user was redirected there. */
import type { Context } from 'koa';
import { type Activity, SessionEnded } from '../../accounts/activity/activity.ts';
import { type Identities, methodIdOf } from '../../accounts/identities/identities.ts';
import type { LinkIdentity, ResolveIdentity } from '../../accounts/identities/resolve-identity.ts';
import type { AccountMail } from '../../accounts/mail/account-mail.ts';
import { passwordLinkPath } from '../../accounts/password-links/link-mail.ts';
import type { PasswordLinks } from '../../accounts/password-links/password-links.ts';
import { type Message, message } from '../../base/message.ts';
import { proofOf } from '../../provider/browser-sessions.ts';
import type { Standings } from '../../provider/standings.ts';
import type { UpstreamPerson, UpstreamProvider } from '../../upstream/upstream-provider.ts';
import { type Notices, originInSession, requestOrigin, seeOther, type Visitor } from '../page.ts';
import type { EndingChoices } from '../security/what-has-access.ts';
import type { BrowserSignIns } from '../sign-in/browser-sign-ins.ts';
import type { ContinueIfSatisfied, MayAdd } from '../sign-in/sign-in-policy.ts';
import type { OwnPurpose, Purpose, SignInPurpose, UpstreamOutcomes } from '../sign-in/upstream-providers.ts';
import type { WaitingSignIn } from '../sign-in/waiting-sign-in.ts';

/** @param refuse must show the user why the identity is refused */
export type Arrive = (
  ctx: Context,
  provider: UpstreamProvider['settings'],
  came: { readonly person: UpstreamPerson; readonly purpose: Purpose },
  refuse: (reason: string) => Promise<void>,
) => Promise<void>;

type Arrival = { readonly path: string; readonly notice?: Message } | { readonly refused: string };

interface Came<For extends Purpose> {
  readonly provider: UpstreamProvider['settings'];
  readonly person: UpstreamPerson;
  readonly purpose: For;
}

export function createArrival(parts: {
  signedInOf(ctx: Context): Promise<Visitor | undefined>;
  readonly resolveIdentity: ResolveIdentity;
  readonly linkIdentity: LinkIdentity;
  readonly identities: Pick<Identities, 'listOf' | 'use'>;
  readonly mayAdd: MayAdd;
  readonly standings: Pick<Standings, 'wouldBe'>;
  readonly continueIfSatisfied: ContinueIfSatisfied;
  readonly passwordLinks: Pick<PasswordLinks, 'make'>;
  readonly signIns: Pick<BrowserSignIns, 'signIn' | 'confirm'>;
  readonly endingChoices: Pick<EndingChoices, 'firstSignInPath'>;
  readonly waiting: Pick<WaitingSignIn, 'restartOf'>;
  readonly activity: Pick<Activity, 'recordRefused'>;
  readonly mail: AccountMail | undefined;
  readonly notices: Pick<Notices, 'redirect'>;
  readonly outcomes: UpstreamOutcomes;
}): Arrive {
  const { identities, standings, passwordLinks, signIns, endingChoices, waiting, activity, notices, outcomes } = parts;

  async function signIn(ctx: Context, { provider, person, purpose }: Came<SignInPurpose>): Promise<Arrival> {
    const came = await parts.resolveIdentity(provider, person, requestOrigin(ctx));
    if (typeof came === 'string') return { refused: came };
    const { account, isNewLink } = came;
    if (!(await signIns.signIn(ctx, account, person, { ...provider, isNewLink }))) return { refused: 'signed out' };
    const { interaction, target } = purpose;
    const onward = (interaction !== undefined && (await waiting.restartOf(ctx, interaction))) || target;
    if (!isNewLink) return { path: onward };
    return { path: await endingChoices.firstSignInPath(ctx, account, methodIdOf(person.issuer), onward) };
  }

  /** Refuses the user unless the session in which the redirect began is still signed in. */
  async function inSession(ctx: Context, came: Came<OwnPurpose>): Promise<Arrival> {
    const visitor = await parts.signedInOf(ctx);
    const { to, accountId, sessionUid } = came.purpose;
    if (visitor?.account.id !== accountId || visitor.session.uid !== sessionUid) return { refused: 'signed out' };
    try {
      return await (to === 'link' ? link(ctx, came, visitor) : prove(ctx, came, visitor));
    } catch (error) {
      if (!(error instanceof SessionEnded)) throw error;
      return { refused: 'signed out' };
    }
  }

  async function link(
    ctx: Context,
    { provider, person, purpose }: Came<OwnPurpose>,
    { account, session }: Visitor,
  ): Promise<Arrival> {
    // Check again, because the grace period may have ended while the user was at the provider.
    const mayAdd = parts.mayAdd(session);
    const outcome = await parts.linkIdentity(account, provider, person, originInSession(ctx), mayAdd);
    if (outcome === 'taken') return { refused: 'taken already' };
    const about = provider.label;
    if (outcome === 'linked') parts.mail?.notify(account.id, 'method_added', { origin: requestOrigin(ctx), about });
    const path = await parts.continueIfSatisfied(ctx, person);
    return path === undefined
      ? { path: purpose.target, notice: message('upstream.linked', { provider: about }) }
      : { path };
  }

  /** Re-authenticates the user, either for the session or only to choose a new password. */
  async function prove(ctx: Context, came: Came<OwnPurpose>, { account }: Visitor): Promise<Arrival> {
    const { provider, person, purpose } = came;
    const { target } = purpose;
    const { issuer, subject } = person;
    // Do not record a use of the identity yet: it may belong to another user, and a reset is no sign-in.
    const links = await identities.listOf(account.id);
    const own = links.find((one) => one.issuer === issuer && one.subject === subject);
    if (!own) return refuseAnother(ctx, came);
    if (purpose.to === 'reset') {
      // A sign-in that is not strong must not set the password of an account that requires a strong sign-in.
      const { is } = await standings.wouldBe({ accountId: account.id, proofs: [proofOf(person, 0)] });
      if (is !== 'free') return { path: target, notice: message('upstream.too-weak') };
      const { token } = await passwordLinks.make(account, 'confirmed', originInSession(ctx));
      return { path: passwordLinkPath(token) };
    }
    const isNewLink = own.lastUsedAt === null;
    if (!(await signIns.confirm(ctx, account, person, { ...provider, isNewLink }))) return { refused: 'signed out' };
    await identities.use(person);
    if (isNewLink) return { path: await endingChoices.firstSignInPath(ctx, account, methodIdOf(issuer), target) };
    // A target with a query is a page that shows a form again. That page says what to do, so it needs no notice.
    return target.includes('?') ? { path: target } : { path: target, notice: message('upstream.confirmed') };
  }

  async function refuseAnother(ctx: Context, { provider, person, purpose }: Came<OwnPurpose>): Promise<Arrival> {
    const { issuer, subject } = person;
    await activity.recordRefused({
      action: 'sign_in_refused',
      actor: 'person',
      accountId: purpose.accountId,
      origin: requestOrigin(ctx),
      details: { reason: 'another', provider: provider.id, provider_name: provider.label, issuer, subject },
    });
    return { refused: 'another' };
  }

  return async (ctx, provider, { person, purpose }, refuse) => {
    const arrival =
      purpose.to === 'sign in'
        ? await signIn(ctx, { provider, person, purpose })
        : await inSession(ctx, { provider, person, purpose });
    if ('refused' in arrival) return refuse(arrival.refused);
    outcomes.cameFromUpstream(provider.id, 'succeeded');
    const { path, notice } = arrival;
    return notice ? notices.redirect(ctx, path, notice) : seeOther(ctx, path);
  };
}
