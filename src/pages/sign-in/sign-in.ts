/** `/login`, and the sign-in step of an authorization request. */
import type { Context } from 'koa';
import { type Message, message, type Text } from '../../base/message.ts';
import { isLongId } from '../../base/random-id.ts';
import type { BrowserSessions } from '../../provider/browser-sessions.ts';
import { requireNavigation } from '../../provider/cross-origin.ts';
import { formOf } from '../../provider/form.ts';
import type { Interactions, PendingSignIn } from '../../provider/interactions.ts';
import type { FormDrafts } from '../forms/form-drafts.ts';
import { seeOther } from '../page.ts';
import type { PageKit } from '../page-kit.ts';
import { get, post, type Route } from '../routes.ts';
import { inUnits } from '../words/moment.ts';
import { type AttemptParts, createSignInAttempts } from './attempt.ts';
import type { BrowserSignIns } from './browser-sign-ins.ts';
import type { EnabledMethods } from './enabled-methods.ts';
import { PASSKEY_OPTIONS } from './passkey-sign-ins.ts';
import { STRONG_SIGN_IN } from './sign-in-policy.ts';
import { CHOOSE, type NamedProvider, PROVIDER_FIELD, type SignInPurpose } from './upstream-providers.ts';
import type { WaitingSignIn } from './waiting-sign-in.ts';

declare module '../view-data.ts' {
  interface ViewData {
    readonly 'sign-in': SignInView;
  }
}

interface SignInView {
  readonly action: string;
  readonly email: string;
  /** What went wrong at the last attempt. */
  readonly problem?: Text;
  /** True if the typed email address or password is wrong. */
  readonly isTypedWrong?: boolean;
  /** The client that has redirected the user here, if any. */
  readonly client?: { readonly name: string };
  /** True if the page has a button that denies the authorization and returns to the client. */
  readonly cancel?: boolean;
  /** What an earlier page has done, such as setting a password. */
  readonly notice?: Text | undefined;
  /** Undefined if the service sends no mail. */
  readonly forgotPasswordUrl?: string;
  readonly providers: readonly NamedProvider[];
  readonly providerField: string;
  readonly passwords: boolean;
  /** Undefined for a service without passkeys. */
  readonly passkeyOptionsUrl: string | undefined;
}

type Same = 'providers' | 'providerField' | 'passwords' | 'passkeyOptionsUrl';

const HOME = '/profile';

export type SignInSteps = ReturnType<typeof createSignInSteps>;

export function createSignInSteps(
  parts: AttemptParts & {
    readonly kit: PageKit;
    readonly enabled: EnabledMethods;
    readonly formDrafts: Pick<FormDrafts, 'find'>;
    readonly sessions: Pick<BrowserSessions, 'whyEnded'>;
    readonly signIns: Pick<BrowserSignIns, 'signIn' | 'record'>;
    readonly interactions: Pick<Interactions, 'deny' | 'signIn'>;
    readonly waiting: Pick<WaitingSignIn, 'begin' | 'end'>;
  },
) {
  const { kit, enabled, formDrafts, sessions, signIns, interactions, waiting } = parts;
  const { passwords, upstream, passkeys, forgotPasswordUrl } = enabled;
  const { providers } = upstream;
  const { attempt, whySignInAgain } = createSignInAttempts(parts);

  async function draw(ctx: Context, view: Omit<SignInView, Same>): Promise<void> {
    // The forms of the page can redirect to a provider, which can redirect to any site.
    if (providers.length > 0) await kit.pageToClient(ctx, async () => {});
    await kit.render(ctx, 'sign-in', {
      providers,
      providerField: PROVIDER_FIELD,
      passwords,
      passkeyOptionsUrl: passkeys && PASSKEY_OPTIONS.signIn,
      ...(forgotPasswordUrl !== undefined && {
        forgotPasswordUrl: view.email
          ? `${forgotPasswordUrl}?${new URLSearchParams({ email: view.email })}`
          : forgotPasswordUrl,
      }),
      ...view,
    });
  }

  /** Returns what the previous page has stored before it redirected here. */
  async function arrival(ctx: Context): Promise<{ email: string; notice?: Text }> {
    const email = await formDrafts.find(ctx, 'email', ctx.query.form, undefined);
    const notice = await kit.notices.take(ctx);
    return { email: email ?? '', ...(notice && { notice }) };
  }

  /**
   * Returns the only provider, to which the browser is redirected at once. Returns undefined after a failed sign-in, if
   * the provider must ask who signs in, or if a passkey was created or used in this browser.
   */
  function directProvider(ctx: Context): { readonly id: string } | undefined {
    if (ctx.query[CHOOSE] !== undefined || ctx.method !== 'GET') return undefined;
    if (passkeys?.isKnownIn(ctx)) return undefined;
    const { only } = upstream;
    return only && upstream.asksWho(ctx, only.id) ? undefined : only;
  }

  async function whySignedOut(ctx: Context): Promise<Message | undefined> {
    const why = await sessions.whyEnded(ctx);
    if (typeof why !== 'number') return why && message('sign-in.session-ended');
    return message('sign-in.session-expired', { ...inUnits(why), providers: providers.length });
  }

  async function show(ctx: Context): Promise<void> {
    const target = targetOf(ctx);
    if (await kit.signedInOf(ctx)) return seeOther(ctx, target.url);
    const provider = directProvider(ctx);
    if (provider) return upstream.begin(ctx, provider.id, { to: 'sign in', target: target.url, isFresh: false });
    const notice = await whySignedOut(ctx);
    await draw(ctx, { action: target.loginPath, notice, ...(await arrival(ctx)) });
  }

  async function submit(ctx: Context): Promise<void> {
    const target = targetOf(ctx);
    const outcome = await attempt(ctx, { to: 'sign in', target: target.url, isFresh: false });
    if (outcome === undefined) return;
    if ('problem' in outcome) return draw(ctx, { action: target.loginPath, ...outcome });
    const { account, came, method } = outcome;
    await signIns.signIn(ctx, account, method, came);
    seeOther(ctx, target.url);
  }

  async function showFor(ctx: Context, pending: PendingSignIn): Promise<void> {
    const { uid, client, loginHint = '' } = pending;
    waiting.begin(ctx, uid);
    const asked = await whySignInAgain(ctx);
    // Show the form if the last sign-in was too weak, because a redirect to the provider would loop forever.
    const provider = asked.problem === undefined ? directProvider(ctx) : undefined;
    if (provider) return upstream.begin(ctx, provider.id, purposeOf(pending));
    const { email, ...arrived } = await arrival(ctx);
    const known = { email: email || loginHint, ...arrived, ...asked };
    await draw(ctx, { action: ctx.path, client, cancel: true, ...known });
  }

  async function submitFor(ctx: Context, pending: PendingSignIn): Promise<void> {
    const { client } = pending;
    if (formOf(ctx).get('decision') === 'deny') {
      waiting.end(ctx);
      return seeOther(ctx, await interactions.deny(ctx));
    }
    const outcome = await attempt(ctx, purposeOf(pending));
    if (outcome === undefined) return;
    if ('problem' in outcome) {
      return draw(ctx, { action: ctx.path, client, cancel: true, ...outcome });
    }
    const { account, came, method, standing } = outcome;
    if (standing.is === 'must add') {
      // The interaction waits until the user has added a strong method.
      await signIns.signIn(ctx, account, method, came);
      return seeOther(ctx, STRONG_SIGN_IN);
    }
    const onward = await interactions.signIn(ctx, account, method);
    // If the interaction was answered already or has expired, no user was signed in, so record nothing.
    if (onward !== ctx.path) await signIns.record(ctx, account, came);
    waiting.end(ctx);
    seeOther(ctx, onward);
  }

  return { show, submit, showFor, submitFor };
}

export function signInPage(parts: {
  readonly kit: Pick<PageKit, 'form'>;
  readonly steps: Pick<SignInSteps, 'show' | 'submit'>;
}): Route[] {
  const { kit, steps } = parts;
  return [get('/login', requireNavigation, steps.show), post('/login', ...kit.form, steps.submit)];
}

const purposeOf = ({ uid, isAgain, loginHint }: PendingSignIn): SignInPurpose => ({
  to: 'sign in',
  target: HOME,
  interaction: uid,
  isFresh: isAgain,
  loginHint,
});

/** @param target where the user continues after the sign-in @param form the name of a stored form draft */
export function loginPath(target: string, form?: string): string {
  const query = new URLSearchParams({
    ...(target !== HOME && { return_to: target }),
    ...(form !== undefined && { form }),
  });
  return query.size === 0 ? '/login' : `/login?${query}`;
}

function targetOf(ctx: Context): { url: string; loginPath: string } {
  const path = pathOfOurs(ctx.query.return_to);
  const { form } = ctx.query;
  if (!isLongId(form)) return { url: path, loginPath: loginPath(path) };
  return { url: `${path}?form=${form}`, loginPath: loginPath(path, form) };
}

/** Accepts only a path of a profile page. Any other target is replaced by the profile itself. */
function pathOfOurs(target: unknown): string {
  const isOurs = typeof target === 'string' && /^\/profile(\/[A-Za-z0-9_/-]*)?$/.test(target);
  return isOurs ? target : HOME;
}
