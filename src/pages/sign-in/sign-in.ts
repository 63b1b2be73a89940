/** `/login`, and the sign-in step of an authorization request: who is this person? */
import type { Context } from 'koa';
import type { Account } from '../../accounts/account.ts';
import { normalizeEmail } from '../../accounts/email.ts';
import { wayInWords } from '../../accounts/ways-in.ts';
import type { Method } from '../../provider/browser-sessions.ts';
import { requireNavigation } from '../../provider/cross-origin.ts';
import { formOf } from '../../provider/form.ts';
import type { PendingSignIn } from '../../provider/interactions.ts';
import { originOf, seeOther, signedInAccount, visitorOf } from '../page.ts';
import { get, type PageParts, post, type Route } from '../routes.ts';
import { STRONGER } from './demands.ts';
import { PASSKEY_FIELD, PASSKEY_OPTIONS } from './passkeys.ts';
import type { Way } from './signing-in.ts';
import { CHOOSE, comesFrom, type Purpose, WAY_FIELD, type WayIn } from './upstream-ways.ts';

declare module '../view-data.ts' {
  interface ViewData {
    readonly 'sign-in': SignInView;
  }
}

interface SignInView {
  readonly title: string;
  /** Where the form posts to. */
  readonly action: string;
  /** What was typed before, or empty. */
  readonly email: string;
  /** A sentence for the person, shown as an alert; absent on the first try. */
  readonly problem?: string;
  /** It is about what was typed. */
  readonly isTypedWrong?: boolean;
  /** The client that sent the person here; absent when they came by themselves. */
  readonly client?: { readonly name: string };
  /** Offers a way back to the client: a button `name="decision" value="deny"`. */
  readonly cancel?: boolean;
  /** What was done on the way here, such as setting a password. */
  readonly notice?: string;
  /** Absent where no mail is sent. */
  readonly forgotPasswordUrl?: string;
  /** The providers that people come from, each a button. */
  readonly ways: readonly WayIn[];
  readonly wayField: string;
  readonly passwords: boolean;
  /** An address may lead to a provider, and then there is no password. */
  readonly hasHints: boolean;
  /** Absent where nobody signs in with one. */
  readonly passkeyOptionsUrl: string | undefined;
}

/** What is the same on every sign-in page. */
type Same = 'title' | 'ways' | 'wayField' | 'passwords' | 'hasHints' | 'passkeyOptionsUrl';

type Attempt =
  | (Pick<SignInView, 'email' | 'isTypedWrong'> & { readonly problem: string })
  | { readonly account: Account; readonly came: Way; readonly method: Method };

const TITLE = 'Sign in';
const PASSWORD_ALONE = 'A password is no longer enough for you';
/** Where a person goes who was on the way to nowhere else. */
const HOME = '/profile';

/** `/login` for who comes by themselves, and for a client the step of its authorization request. */
export function signInAnswers(parts: PageParts) {
  const { host, accounts, sessions, interactions, checkPassword, recordSignIn } = parts;
  const { keptForms, waiting, forgotPasswordUrl, upstream, passwords } = parts;
  const { passkeySignIns: passkeys, demands } = parts;
  const { ways } = upstream;

  async function draw(ctx: Context, view: Omit<SignInView, Same>): Promise<void> {
    // Its forms can end at a provider, and wherever that leads on to.
    if (ways.length > 0) await host.pageToClient(ctx, async () => {});
    await host.render(ctx, 'sign-in', {
      title: TITLE,
      ways,
      wayField: WAY_FIELD,
      passwords,
      hasHints: upstream.hasHints,
      passkeyOptionsUrl: passkeys && PASSKEY_OPTIONS.signIn,
      ...(forgotPasswordUrl !== undefined && {
        forgotPasswordUrl: view.email
          ? `${forgotPasswordUrl}?${new URLSearchParams({ email: view.email })}`
          : forgotPasswordUrl,
      }),
      ...view,
    });
  }

  /** What the page that led here knows: the address, and what was done there. */
  async function arrival(ctx: Context): Promise<{ email: string; notice?: string }> {
    const email = await keptForms.look<string>(ctx, ctx.query.form, undefined);
    const notice = await host.notices.take(ctx);
    return { email: email ?? '', ...(notice && { notice }) };
  }

  /** @returns who it is, or what to say; undefined where they were led to a provider. */
  async function attempt(ctx: Context, purpose: Purpose): Promise<Attempt | undefined> {
    const form = formOf(ctx);
    const answer = form.get(PASSKEY_FIELD);
    if (passkeys && answer !== null) {
      const used = await passkeys.check(ctx, answer);
      if (typeof used === 'string') return { email: '', problem: used };
      return { account: used.account, came: used, method: 'passkey' };
    }
    const email = form.get('email') ?? '';
    const password = form.get('password') ?? '';
    // By the address alone: whether somebody has an account or a password is told to nobody.
    const hinted = upstream.wayOf(email);
    const way = form.get(WAY_FIELD) ?? (password === '' ? hinted?.id : undefined);
    if (way !== undefined) {
      // The client's hint names the last person.
      const hint = upstream.asksWho(ctx, way) ? undefined : purpose.loginHint;
      const loginHint = normalizeEmail(email) ?? hint;
      await upstream.begin(ctx, way, { ...purpose, loginHint });
      return undefined;
    }
    if (password === '' && upstream.hasHints) {
      ctx.status = 422;
      const problem = passwords ? 'Enter your password.' : 'Choose how you sign in.';
      return { email, problem, isTypedWrong: true };
    }
    const account = await checkPassword(ctx, { email, password });
    if (typeof account !== 'string') {
      const problem = await refusedByDemand(ctx, account);
      if (problem !== undefined) return { email, problem };
      return { account, came: 'password', method: 'password' };
    }
    const problem = hinted ? `${account} ${comesFrom(hinted)}` : account;
    return { email, problem, isTypedWrong: true };
  }

  /** Says what they sign in with. Only for who knows the password, or is signed in. */
  async function notBy(what: string, { id }: Pick<Account, 'id'>): Promise<string> {
    const held = (await parts.waysIn.of(id)).filter(({ isStrong }) => isStrong);
    const ways = held.map(wayInWords).join(' or ');
    return `${what}: sign in with ${ways}.`;
  }

  async function refusedByDemand(ctx: Context, { id }: Account): Promise<string | undefined> {
    if (await demands.takesPassword(id)) return undefined;
    ctx.status = 403;
    await parts.activity.record({
      action: 'sign_in_refused',
      actor: 'person',
      accountId: id,
      origin: originOf(ctx),
      details: { reason: 'password_alone' },
    });
    return notBy(PASSWORD_ALONE, { id });
  }

  /** Why a person who is signed in must sign in again: how they did is not enough (sign_in.require). */
  async function askedByDemand(ctx: Context): Promise<{ readonly problem?: string }> {
    const visitor = await visitorOf(ctx, { sessions, accounts });
    if (!visitor || (await demands.mayAddWay(visitor))) return {};
    const { account, session } = visitor;
    const what =
      session.method === 'password' ? PASSWORD_ALONE : 'Your last sign-in did not prove enough';
    return { problem: await notBy(what, account) };
  }

  /**
   * With one way there is nothing to choose, except after it came to nothing, for the next person in
   * this browser, or in a browser where there was another way: a passkey.
   */
  function straightOn(ctx: Context, loginHint = ''): { readonly id: string } | undefined {
    if (ctx.query[CHOOSE] !== undefined || ctx.method !== 'GET') return undefined;
    if (passkeys?.isKnownIn(ctx)) return undefined;
    const way = upstream.only ?? (passwords ? undefined : upstream.wayOf(loginHint));
    return way && upstream.asksWho(ctx, way.id) ? undefined : way;
  }

  async function show(ctx: Context): Promise<void> {
    const target = targetOf(ctx);
    if (await signedInAccount(ctx, { sessions, accounts })) return seeOther(ctx, target.url);
    const way = straightOn(ctx);
    if (way) return upstream.begin(ctx, way.id, { target: target.url, isFresh: false });
    await draw(ctx, { action: target.loginPath, ...(await arrival(ctx)) });
  }

  async function submit(ctx: Context): Promise<void> {
    const target = targetOf(ctx);
    const outcome = await attempt(ctx, { target: target.url, isFresh: false });
    if (outcome === undefined) return;
    if ('problem' in outcome) return draw(ctx, { action: target.loginPath, ...outcome });
    const { account, came, method } = outcome;
    await sessions.signIn(ctx, account, method);
    await recordSignIn(ctx, account, came);
    seeOther(ctx, target.url);
  }

  /** `GET /interaction/:uid` while it waits for a sign-in. */
  async function showFor(ctx: Context, pending: PendingSignIn): Promise<void> {
    const { uid, client, loginHint = '' } = pending;
    waiting.begin(ctx, uid);
    const asked = await askedByDemand(ctx);
    // Not there again from where the sign-in was not enough: it would lead back here without end.
    const way = asked.problem === undefined ? straightOn(ctx, loginHint) : undefined;
    if (way) return upstream.begin(ctx, way.id, purposeOf(pending));
    const { email, ...arrived } = await arrival(ctx);
    const known = { email: email || loginHint, ...arrived, ...asked };
    await draw(ctx, { action: ctx.path, client, cancel: true, ...known });
  }

  /** `POST /interaction/:uid` while it waits for a sign-in. */
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
    const { account, came, method } = outcome;
    if (method === 'password' && (await demands.afterPassword(account.id))?.isOver) {
      // It goes on waiting, until they have added a way.
      await sessions.signIn(ctx, account, method);
      await recordSignIn(ctx, account, came);
      return seeOther(ctx, STRONGER);
    }
    await recordSignIn(ctx, account, came);
    waiting.end(ctx);
    seeOther(ctx, await interactions.signIn(ctx, account, method));
  }

  return { show, submit, showFor, submitFor };
}

export function signInPage(parts: PageParts): Route[] {
  const { show, submit } = signInAnswers(parts);
  return [get('/login', requireNavigation, show), post('/login', ...parts.steps.form, submit)];
}

const purposeOf = ({ uid, isAgain, loginHint }: PendingSignIn): Purpose => ({
  target: HOME,
  interaction: uid,
  isFresh: isAgain,
  loginHint,
});

/** The sign-in page that leads back to `target`, and to what was typed there, if it was kept. */
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
  if (typeof form !== 'string' || !/^[A-Za-z0-9_-]{43}$/.test(form)) {
    return { url: path, loginPath: loginPath(path) };
  }
  return { url: `${path}?form=${form}`, loginPath: loginPath(path, form) };
}

/** Only a path below the profile: anything else a link could carry leads to the profile itself. */
function pathOfOurs(target: unknown): string {
  const isOurs = typeof target === 'string' && /^\/profile(\/[A-Za-z0-9_/-]*)?$/.test(target);
  return isOurs ? target : HOME;
}
