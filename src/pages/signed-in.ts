/** Steps of many routes, which check the form, the signed-in user, and whether the sign-in is recent. */
import type { Context, Middleware, Next } from 'koa';
import type { Account } from '../accounts/account.ts';
import type { AccountRegistry } from '../accounts/account-registry.ts';
import { SessionEnded } from '../accounts/activity/activity.ts';
import { type Clock, epochSeconds } from '../base/clock.ts';
import { isMessage, message, type Text } from '../base/message.ts';
import { AccountBusy } from '../base/refusal.ts';
import { requestState } from '../base/request-state.ts';
import type { BrowserSessions } from '../provider/browser-sessions.ts';
import { findForm, formOf, readForm } from '../provider/form.ts';
import { byPassword, type Standings } from '../provider/standings.ts';
import type { ErrorPage } from './error-page/error-page.ts';
import type { FormDrafts } from './forms/form-drafts.ts';
import { LIMIT_FIELDS } from './forms/limit-form.ts';
import {
  type FormChecks,
  foundVisitor,
  type Notices,
  ownSession,
  seeOther,
  signedInOf,
  type Visitor,
  visitorIn,
  visitorOf,
} from './page.ts';
import type { PageKit } from './page-kit.ts';
import type { Redraw } from './routes.ts';
import type { BrowserSignIns, ConfirmationMethod } from './sign-in/browser-sign-ins.ts';
import type { EnabledMethods } from './sign-in/enabled-methods.ts';
import { PASSKEY_FIELD, PASSKEY_OPTIONS } from './sign-in/passkey-sign-ins.ts';
import { isPaused, type PasswordCheck } from './sign-in/password-check.ts';
import { loginPath } from './sign-in/sign-in.ts';
import { isOpenTo, STRONG_SIGN_IN } from './sign-in/sign-in-policy.ts';
import { type NamedProvider, PROVIDER_FIELD } from './sign-in/upstream-providers.ts';
import type { Render } from './view-data.ts';
import type { RightsInWords } from './words/rights.ts';

declare module './view-data.ts' {
  interface ViewData {
    readonly 'confirm-password': {
      /** The URL that receives the password and the values of the form for which the user must re-authenticate. */
      readonly action: string;
      readonly email: string;
      readonly hasPassword: boolean;
      readonly providers: readonly NamedProvider[];
      readonly providerField: string;
      /** Undefined if the user has no passkey. */
      readonly passkeyOptionsUrl: string | undefined;
      /** Hidden fields with the values of the sent form. */
      readonly carried: readonly { readonly name: string; readonly value: string }[];
      readonly problem?: Text;
      /** True if the typed password is wrong. */
      readonly isTypedWrong: boolean;
    };
  }
}

/** The method with which the user has re-authenticated, or why the method was refused. */
type Proof = { readonly method: ConfirmationMethod } | { readonly problem: Text; readonly isTypedWrong: boolean };

/** Sensitive actions require a re-authentication if the user's latest sign-in is older than this. */
const RECENT_SECONDS = 600;

/** The form fields that are stored before a sign-in, and shown again afterwards. None of them may contain a secret. */
const TYPED_FIELDS = [
  'name',
  'redirect_uris',
  'drawn_from',
  'expires_in_days',
  'confirm_name',
  'end_connections',
  'homepage_url',
  'support_url',
  'privacy_url',
  'remove_way',
  'remove_password',
  'end_sessions',
  'revoke_api_keys',
  'way',
  'onward',
  'sentence',
  ...LIMIT_FIELDS,
  'clients',
  'api_keys',
  'approve',
  'shown',
  'find',
  'mail',
];
/** The form fields that are not sent again, because they are valid for only one request. */
const NOT_CARRIED = ['form_token', 'current_password', PASSKEY_FIELD];
/** The notice on a form that was not saved because the user had to sign in first. */
export const NOTHING_SENT = message('form.draft-kept');

/** The value of `Retry-After` for an account with too many requests. */
const BUSY_SECONDS = '2';

const typedForms = requestState<URLSearchParams>('a kept form');

/** Returns the signed-in account. Use this only in steps after `requireSignedIn`. */
export const accountOf = (ctx: Context): Account => visitorIn(ctx).account;

/** Returns what the user typed on this page before a sign-in, if anything. */
export const typedOf = typedForms.find;

export function createPageKit(parts: {
  render: Render;
  rightsInWords: RightsInWords;
  languageOf: (ctx: Context, visitor: Visitor | undefined) => string;
  notices: Notices;
  pageToClient: Middleware;
  forms: FormChecks;
  clock: Clock;
  accounts: AccountRegistry;
  sessions: BrowserSessions;
  checkPassword: PasswordCheck;
  enabled: Pick<EnabledMethods, 'passwords' | 'upstream' | 'passkeys'>;
  signIns: Pick<BrowserSignIns, 'confirm'>;
  formDrafts: FormDrafts;
  standings: Standings;
  errorPage: Pick<ErrorPage, 'formIsStale' | 'accountIsBusy'>;
  /** The step of `submitResults`, which must run after the check of the form token. */
  keepResult: Middleware;
}): PageKit {
  const { render, notices, pageToClient, forms, clock, sessions, signIns } = parts;
  const { checkPassword, enabled, formDrafts, standings, errorPage } = parts;
  const { upstream, passkeys } = enabled;

  async function keepTyped(ctx: Context): Promise<string | undefined> {
    const owner = forms.formAccount(ctx);
    const typed = [...formOf(ctx)].filter(([name]) => TYPED_FIELDS.includes(name));
    if (owner === undefined || typed.length === 0) return undefined;
    return formDrafts.save(ctx, 'typed', typed, owner);
  }

  async function findTyped(ctx: Context, { id }: Account): Promise<void> {
    const typed = await formDrafts.find(ctx, 'typed', ctx.query.form, id);
    if (typed) typedForms.set(ctx, new URLSearchParams(typed));
  }

  async function requireSignedIn(ctx: Context, next: Next): Promise<void> {
    const visitor = await signedInOf(ctx, parts);
    if (!visitor) return askToSignIn(ctx);
    if (!isOpenTo(ctx, visitor)) return seeOther(ctx, STRONG_SIGN_IN);
    if (ctx.query.form !== undefined) await findTyped(ctx, visitor.account);
    // Opening a page extends the session, even without JavaScript.
    if (ctx.method === 'GET') await sessions.keepAlive(ctx);
    try {
      await next();
    } catch (error) {
      if (!(error instanceof SessionEnded)) throw error;
      await askToSignIn(ctx);
    }
  }

  async function askToSignIn(ctx: Context): Promise<void> {
    const form = ctx.method === 'POST' ? await keepTyped(ctx) : undefined;
    seeOther(ctx, loginPath(ctx.path, form));
  }

  /** Refuses a form that was rendered for another user or session. Must run after `requireSignedIn`. */
  const ownFormStep = (redraw: Redraw | undefined): Middleware =>
    async function requireOwnForm(ctx, next) {
      const visitor = visitorIn(ctx);
      const formSession = forms.formSession(ctx, visitor);
      if (formSession === 'this session') return answeringBusy(ctx, next, redraw);
      const { name } = visitor.account;
      const isTheirs = formSession === 'another session';
      if (!redraw || !(isTheirs || redraw.isForEverybody)) {
        return errorPage.formIsStale(ctx, { name, isTheirs, href: pageOf(ctx, isTheirs) });
      }
      ctx.status = 409;
      const why = isTheirs ? message('form.signed-in-again') : message('form.now-signed-in-as', { name });
      await redraw.draw(ctx, why);
    };

  /** Renders the form again if the account has too many requests at once. */
  async function answeringBusy(ctx: Context, next: Next, redraw: Redraw | undefined): Promise<void> {
    try {
      await next();
    } catch (error) {
      if (!(error instanceof AccountBusy)) throw error;
      ctx.status = 429;
      ctx.set('Retry-After', BUSY_SECONDS);
      await (redraw ? redraw.draw(ctx, message('form.busy')) : errorPage.accountIsBusy(ctx));
    }
  }

  /** @returns undefined if the form contains no proof, because the user was not asked yet */
  async function proofIn(ctx: Context, form: URLSearchParams, acceptsPassword: boolean): Promise<Proof | undefined> {
    const account = accountOf(ctx);
    const answer = form.get(PASSKEY_FIELD);
    if (passkeys && answer !== null) {
      const used = await passkeys.check(ctx, answer, account);
      return isMessage(used) ? { problem: used, isTypedWrong: false } : { method: used };
    }
    const password = form.get('current_password');
    if (password === null || !acceptsPassword) return undefined;
    const { email, id: accountId } = account;
    const checked = await checkPassword(ctx, { email, password, accountId });
    if (!isMessage(checked)) return { method: 'password' };
    // Replace the text about the email address and the password, because the user has typed only a password.
    const problem = isPaused(ctx) ? checked : message('confirm.wrong-password');
    return { problem, isTypedWrong: true };
  }

  async function isRecent(ctx: Context): Promise<boolean> {
    const { proofs = [] } = (await sessions.current(ctx)) ?? {};
    return proofs.some(({ at }) => epochSeconds(clock) - at <= RECENT_SECONDS);
  }

  async function requireRecentSignIn(ctx: Context, next: Next): Promise<void> {
    if (await isRecent(ctx)) return next();
    const account = accountOf(ctx);
    const form = findForm(ctx) ?? new URLSearchParams();
    const providerId = form.get(PROVIDER_FIELD);
    if (providerId !== null) return confirmThere(ctx, providerId);
    const { is } = await standings.of(byPassword(account.id), ctx);
    const acceptsPassword = enabled.passwords && is !== 'must use';
    const proof = await proofIn(ctx, form, acceptsPassword);
    if (proof && 'method' in proof) {
      const came = proof.method === 'password' ? 'password' : 'passkey';
      if (!(await signIns.confirm(ctx, account, came, proof.method))) return askToSignIn(ctx);
      return next();
    }
    const providers = await upstream.listMethods(account);
    const hasPasskey = (await passkeys?.has(account)) ?? false;
    // The form of the page can redirect to a provider.
    if (providers.length > 0) await pageToClient(ctx, async () => {});
    await render(ctx, 'confirm-password', {
      action: ctx.url,
      email: account.email,
      hasPassword: acceptsPassword && (account.hasPassword || !(providers.length > 0 || hasPasskey)),
      providers,
      providerField: PROVIDER_FIELD,
      passkeyOptionsUrl: hasPasskey ? PASSKEY_OPTIONS.confirm : undefined,
      carried: [...form].filter(([name]) => !NOT_CARRIED.includes(name)).map(([name, value]) => ({ name, value })),
      isTypedWrong: false,
      ...proof,
    });
  }

  /** Re-authenticates at a provider. The form is not saved; its page shows the typed values again afterwards. */
  async function confirmThere(ctx: Context, providerId: string): Promise<void> {
    const form = await keepTyped(ctx);
    await upstream.begin(ctx, providerId, {
      to: 'confirm',
      target: form === undefined ? ctx.path : `${ctx.path}?form=${form}`,
      ...ownSession(ctx),
    });
  }

  const form = [readForm, forms.requireFormToken, parts.keepResult];
  return {
    render,
    rightsInWords: (ctx) => (rights) => parts.rightsInWords(rights, parts.languageOf(ctx, foundVisitor(ctx))),
    notices,
    pageToClient,
    formSession: forms.formSession,
    visitorOf: (ctx) => visitorOf(ctx, parts),
    signedInOf: (ctx) => signedInOf(ctx, parts),
    form,
    requireSignedIn,
    ownForm: (redraw) => [...form, requireSignedIn, ownFormStep(redraw)],
    requireRecentSignIn,
    isRecent,
  };
}

/** Returns the path of the form's page or, for a form of another user, of a list that every user can open. */
const pageOf = ({ path }: Context, isTheirs: boolean): string => (isTheirs ? path : path.split('/', 3).join('/'));
