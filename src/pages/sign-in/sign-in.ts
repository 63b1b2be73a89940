/** `/login`, and the sign-in step of an authorization request: who is this person? */
import type { Context } from 'koa';
import { requireNavigation } from '../../provider/cross-origin.ts';
import { formOf } from '../../provider/form.ts';
import type { Interactions, PendingSignIn } from '../../provider/interactions.ts';
import type { KeptForms } from '../forms/kept-forms.ts';
import { seeOther } from '../page.ts';
import type { PageKit } from '../page-kit.ts';
import { get, post, type Route } from '../routes.ts';
import type { SignInAttempts } from './attempt.ts';
import type { BrowserSignIns } from './browser-sign-ins.ts';
import { STRONGER } from './demands.ts';
import type { OfferedMethods } from './offered-methods.ts';
import { PASSKEY_OPTIONS } from './passkeys.ts';
import {
  CHOOSE,
  type Purpose,
  type UpstreamSignIns,
  WAY_FIELD,
  type WayIn,
} from './upstream-ways.ts';
import type { WaitingSignIn } from './waiting-sign-in.ts';

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

const TITLE = 'Sign in';
/** Where a person goes who was on the way to nowhere else. */
const HOME = '/profile';

export type SignInForm = ReturnType<typeof createSignInForm>;

/** The form, and when it is skipped. */
export function createSignInForm(parts: {
  readonly kit: PageKit;
  readonly offered: OfferedMethods;
  readonly keptForms: Pick<KeptForms, 'look'>;
}) {
  const { kit, offered, keptForms } = parts;
  const { passwords, upstream, passkeys, forgotPasswordUrl } = offered;
  const { ways } = upstream;

  async function draw(ctx: Context, view: Omit<SignInView, Same>): Promise<void> {
    // Its forms can end at a provider, and wherever that leads on to.
    if (ways.length > 0) await kit.pageToClient(ctx, async () => {});
    await kit.render(ctx, 'sign-in', {
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
    const notice = await kit.notices.take(ctx);
    return { email: email ?? '', ...(notice && { notice }) };
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

  return { draw, arrival, straightOn };
}

export type SignInSteps = ReturnType<typeof createSignInSteps>;

/** `/login` for a user who comes by themselves; for a client, the step of its authorization request. */
export function createSignInSteps(parts: {
  readonly kit: Pick<PageKit, 'visitorOf'>;
  readonly form: SignInForm;
  readonly attempts: SignInAttempts;
  readonly upstream: Pick<UpstreamSignIns, 'begin'>;
  readonly signIns: Pick<BrowserSignIns, 'signIn' | 'record'>;
  readonly interactions: Pick<Interactions, 'deny' | 'signIn'>;
  readonly waiting: Pick<WaitingSignIn, 'begin' | 'end'>;
}) {
  const { kit, form, attempts, upstream, signIns, interactions, waiting } = parts;
  const { draw, arrival, straightOn } = form;
  const { attempt, askedByDemand, mustAddWay } = attempts;

  async function show(ctx: Context): Promise<void> {
    const target = targetOf(ctx);
    if (await kit.visitorOf(ctx)) return seeOther(ctx, target.url);
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
    await signIns.signIn(ctx, account, method, came);
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
    if (method === 'password' && (await mustAddWay(account))) {
      // It goes on waiting, until they have added a way.
      await signIns.signIn(ctx, account, method, came);
      return seeOther(ctx, STRONGER);
    }
    await signIns.record(ctx, account, came);
    waiting.end(ctx);
    seeOther(ctx, await interactions.signIn(ctx, account, method));
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
