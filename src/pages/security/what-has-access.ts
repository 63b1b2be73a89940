/**
 * Lists what else gives access to an account, and ends what the user does not recognize. The list is on the page of a
 * one-time link, and on `/profile/security/first-sign-in` after the first sign-in with a provider, because an attacker
 * may have used the invitation before.
 */
import type { Context } from 'koa';
import type { Account } from '../../accounts/account.ts';
import type { Origin } from '../../accounts/activity/activity.ts';
import type { ApiKeys } from '../../accounts/api-keys/api-keys.ts';
import type { RecoveryStep } from '../../accounts/password-links/password-changes.ts';
import type { LinkPurpose } from '../../accounts/password-links/password-links.ts';
import type { SessionList } from '../../accounts/session-list.ts';
import type { LinkedMethod, SignInMethods } from '../../accounts/sign-in-methods.ts';
import type { StrongSignIns } from '../../accounts/strong-sign-ins.ts';
import type { Connections } from '../../authorizations/connections.ts';
import type { Disconnect } from '../../authorizations/endings.ts';
import { type Message, message, type Text } from '../../base/message.ts';
import type { BrowserSessions } from '../../provider/browser-sessions.ts';
import { formOf } from '../../provider/form.ts';
import { byPassword, type Standing, type Standings } from '../../provider/standings.ts';
import type { FormDrafts } from '../forms/form-drafts.ts';
import { originInSession, seeOther } from '../page.ts';
import type { PageKit } from '../page-kit.ts';
import { get, post, type Route, SECURITY } from '../routes.ts';
import type { BrowserSignIns } from '../sign-in/browser-sign-ins.ts';
import { accountOf, typedOf } from '../signed-in.ts';
import { toMoment } from '../words/moment.ts';

declare module '../view-data.ts' {
  interface ViewData {
    readonly 'first-sign-in': {
      readonly label: string;
      readonly action: string;
      readonly choices: readonly EndingChoice[];
      readonly fields: readonly { readonly name: string; readonly value: string }[];
      /** The URL on which the user continues. */
      readonly onward: string;
      readonly problem: Text | undefined;
    };
  }
}

export type EndingChoice = ReturnType<typeof asChoice>;

export type EndingChoices = ReturnType<typeof createEndingChoices>;

const FIRST_SIGN_IN = `${SECURITY}/first-sign-in`;
/** Parameters and form fields: `way` identifies the linked provider, and `onward` the stored URL of the next page. */
const [METHOD, ONWARD] = ['way', 'onward'];
const FIELD = {
  password: 'remove_password',
  sessions: 'end_sessions',
  connections: 'end_connections',
  apiKeys: 'revoke_api_keys',
  method: 'remove_way',
};

/** Maximum number of sessions to check. If a user has more, one of the unchecked sessions is assumed to be active. */
const MAX_READ_SESSIONS = 1_000;
const READ_AT_ONCE = 25;

export function createEndingChoices({
  passwords,
  connections,
  disconnect,
  apiKeys,
  signInMethods,
  standings,
  endGrace,
  sessionList,
  sessions,
  formDrafts,
}: {
  readonly passwords: boolean;
  readonly connections: Pick<Connections, 'listOf'>;
  readonly disconnect: Disconnect;
  readonly apiKeys: Pick<ApiKeys, 'listOf' | 'revokeAll'>;
  readonly signInMethods: Pick<SignInMethods, 'of' | 'removeWith'>;
  readonly standings: Pick<Standings, 'wouldBe'>;
  readonly sessionList: Pick<SessionList, 'of'>;
  readonly sessions: Pick<BrowserSessions, 'current' | 'findActive'>;
  readonly formDrafts: Pick<FormDrafts, 'save'>;
} & Pick<StrongSignIns, 'endGrace'>) {
  /**
   * Returns a function that is true for methods that the link must keep. A mailed link proves only access to the
   * mailbox, so it removes no passkey, and no method if a password is not enough (OWASP ASVS 5.0, 6.4.3 and 6.4.4).
   */
  const keptBy =
    (purpose: LinkPurpose | undefined, withPassword: Standing) =>
    ({ kind }: LinkedMethod): boolean =>
      purpose === 'forgotten' && (kind === 'passkey' || withPassword.is !== 'free');

  /**
   * Lists the connections, API keys and sign-in methods that give access to the account.
   *
   * @param form the sent form, whose choices are ticked again
   * @param purpose the purpose of the link with which the user has come; undefined for a signed-in user
   */
  async function of(
    { id }: Account,
    form = new URLSearchParams(),
    purpose?: LinkPurpose,
  ): Promise<readonly EndingChoice[]> {
    const [connected, keys, methods, withPassword] = await Promise.all([
      connections.listOf(id),
      apiKeys.listOf(id),
      signInMethods.of(id),
      standings.wouldBe(byPassword(id)),
    ]);
    const isKept = keptBy(purpose, withPassword);
    return [
      ...counted(FIELD.connections, 'ending.apps', connected.length),
      ...counted(FIELD.apiKeys, 'ending.api-keys', keys.length),
      ...methods.map((method) => ({ ...methodChoice(method), isKept: isKept(method) })),
    ].map((choice) => asChoice(choice, form));
  }

  /** Gives up and returns true after `MAX_READ_SESSIONS`, because a user may have started thousands of sessions. */
  async function hasOtherSession(ctx: Context, account: Account): Promise<boolean> {
    const own = await sessions.current(ctx);
    for (let skip = 0; skip < MAX_READ_SESSIONS; skip += READ_AT_ONCE) {
      const uids = (await sessionList.of(account, READ_AT_ONCE, skip)).map(({ uid }) => uid);
      if ((await sessions.findActive(uids.filter((uid) => uid !== own?.uid))).size > 0) return true;
      if (uids.length < READ_AT_ONCE) return false;
    }
    return true;
  }

  /** Lists everything that gives access to the account, except the method `methodId` and the current session. */
  async function besides(
    ctx: Context,
    account: Account,
    methodId: string,
    form = new URLSearchParams(),
  ): Promise<readonly EndingChoice[]> {
    const [hasOthers, rest] = await Promise.all([hasOtherSession(ctx, account), of(account, form)]);
    const password = { name: FIELD.password, what: message('ending.password') };
    const browsers = { name: FIELD.sessions, what: message('ending.browsers') };
    return [
      ...(passwords && account.hasPassword ? [asChoice(password, form)] : []),
      ...(hasOthers ? [asChoice(browsers, form)] : []),
      ...rest.filter(({ value }) => value !== methodId),
    ];
  }

  return {
    of,
    besides,

    /**
     * Returns the path to which a user is redirected after the first sign-in with a provider.
     *
     * @param methodId the `id` of that provider's `LinkedMethod`
     * @param onward the original target, which is returned if only this provider gives access to the account
     */
    async firstSignInPath(ctx: Context, account: Account, methodId: string, onward: string): Promise<string> {
      if ((await besides(ctx, account, methodId)).length === 0) return onward;
      const kept = await formDrafts.save(ctx, 'onward', onward, account.id);
      return `${FIRST_SIGN_IN}?${new URLSearchParams({ [METHOD]: methodId, ...(kept && { [ONWARD]: kept }) })}`;
    },

    /**
     * Returns a recovery step that ends the ticked connections, API keys and sign-in methods.
     *
     * @param removed is called with the removed sign-in methods
     */
    ending(ctx: Context, origin: Origin, removed: (methods: readonly LinkedMethod[]) => void = () => {}): RecoveryStep {
      const form = formOf(ctx);
      const isChosen = (name: string): boolean => form.get(name) === 'yes';
      const methods = form.getAll(FIELD.method);
      const run: RecoveryStep['run'] = async (tx, { account: { id: accountId }, purpose }) => {
        if (isChosen(FIELD.connections)) await disconnect({ accountId }, origin, tx);
        if (isChosen(FIELD.apiKeys)) await apiKeys.revokeAll(accountId, { origin, tx });
        const withPassword = await standings.wouldBe(byPassword(accountId), tx);
        const hasStrongMethod = withPassword.is !== 'free' && withPassword.hasStrongMethod;
        // End the grace period: a password from a mailed link must never be enough if the user has a strong method.
        if (purpose === 'forgotten' && hasStrongMethod) await endGrace(accountId, tx);
        const isKept = keptBy(purpose, withPassword);
        removed(await signInMethods.removeWith(accountId, methods, { origin, tx, isKept }));
      };
      return { methods, run };
    },
  };
}

export function firstSignInPage(parts: {
  readonly kit: PageKit;
  readonly signInMethods: Pick<SignInMethods, 'of' | 'endUnrecognized'>;
  readonly endingChoices: Pick<EndingChoices, 'besides' | 'ending'>;
  readonly formDrafts: Pick<FormDrafts, 'find'>;
  readonly signIns: Pick<BrowserSignIns, 'keep'>;
  readonly passwords: boolean;
}): Route[] {
  const { kit, signInMethods, endingChoices, formDrafts, signIns, passwords } = parts;

  /** Reads the form before the query, because the URL has no query after a re-authentication. */
  async function askedFor(ctx: Context) {
    const account = accountOf(ctx);
    const form = ctx.method === 'POST' ? formOf(ctx) : typedOf(ctx);
    const said = (name: string): string => form?.get(name) ?? String(ctx.query[name] ?? '');
    const [methodId, kept] = [said(METHOD), said(ONWARD)];
    const onward = await formDrafts.find(ctx, 'onward', kept, account.id);
    const method = (await signInMethods.of(account.id)).find((one) => one.id === methodId);
    const choices = method ? await endingChoices.besides(ctx, account, method.id, form) : [];
    return { method, kept, choices, onward: isOurs(onward) ? onward : '/profile' };
  }

  async function draw(ctx: Context, problem?: Text): Promise<void> {
    const { method, kept, choices, onward } = await askedFor(ctx);
    if (!method || choices.length === 0) return seeOther(ctx, onward);
    // Allow the form to redirect to clients, because the user may continue an authorization request afterwards.
    await kit.pageToClient(ctx, async () => {});
    const fields = [
      { name: METHOD, value: method.id },
      { name: ONWARD, value: kept },
    ];
    const { label } = method;
    await kit.render(ctx, 'first-sign-in', { label, action: FIRST_SIGN_IN, choices, fields, onward, problem });
  }

  async function end(ctx: Context): Promise<void> {
    const account = accountOf(ctx);
    const { choices, onward } = await askedFor(ctx);
    const ticked = choices.filter(({ isChosen }) => isChosen);
    if (ticked.length === 0) return seeOther(ctx, onward);
    const origin = originInSession(ctx);
    const { methods, run } = endingChoices.ending(ctx, origin);
    const left = await signInMethods.endUnrecognized(account.id, {
      origin,
      password: formOf(ctx).get(FIELD.password) === 'yes',
      sessions: formOf(ctx).get(FIELD.sessions) === 'yes',
      passwords,
      methods,
      rest: (tx, ended) => run(tx, { account: ended }),
    });
    if (left === 'last') {
      ctx.status = 422;
      return draw(ctx, message('first-sign-in.last'));
    }
    const more = [message('mail.removed-access'), { items: ticked.map(({ what }) => what) }];
    await signIns.keep(ctx, left, { what: 'unrecognized_ended', more });
    await kit.notices.redirect(ctx, onward, message('first-sign-in.done'));
  }

  const show = (ctx: Context): Promise<void> => draw(ctx);

  return [
    get(FIRST_SIGN_IN, kit.requireSignedIn, show),
    post(FIRST_SIGN_IN, ...kit.ownForm(), kit.requireRecentSignIn, end),
  ];
}

interface Choice {
  readonly name: string;
  readonly what: Message;
  readonly value?: string;
  /** When a sign-in method was added. */
  readonly since?: Date;
  /** True if the one-time link may not remove the sign-in method. Such a method has no checkbox. */
  readonly isKept?: boolean;
}

const asChoice = ({ name, what, value = 'yes', since, isKept = false }: Choice, form: URLSearchParams) => ({
  name,
  what,
  value,
  since: since && toMoment(since),
  isChosen: form.getAll(name).includes(value),
  isKept,
});

const counted = (name: string, text: 'ending.apps' | 'ending.api-keys', count: number): Choice[] =>
  count > 0 ? [{ name, what: message(text, { count }) }] : [];

const methodChoice = ({ id, kind, label, addedAt }: LinkedMethod): Choice => ({
  name: FIELD.method,
  value: id,
  since: addedAt,
  what: message(kind === 'passkey' ? 'ending.passkey' : 'ending.provider', { label }),
});

/** Accepts only a path of this service, so that no value redirects the user to another site. */
const isOurs = (onward: unknown): onward is string => typeof onward === 'string' && /^\/(?![/\\])/.test(onward);
