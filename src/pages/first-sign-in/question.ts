/** The question after the first sign-in with a provider: is all of this yours? */
import type { Context } from 'koa';
import type { Account } from '../../accounts/account.ts';
import type { SessionList } from '../../accounts/session-list.ts';
import type { BrowserSessions } from '../../provider/browser-sessions.ts';
import type { KeptForms } from '../forms/kept-forms.ts';
import type { EndingChoice, EndingChoices } from '../password/recovery.ts';

export type FirstSignIn = ReturnType<typeof createFirstSignIn>;

export const FIRST_SIGN_IN = '/profile/security/first-sign-in';
/** Names the linked provider: a parameter of the page and a field of its form. */
export const WAY = 'way';
/** Names the target URL, which is kept for this browser. Also a parameter and a field. */
export const ONWARD = 'onward';
export const PASSWORD = 'remove_password';
export const SESSIONS = 'end_sessions';

export function createFirstSignIn(parts: {
  readonly passwords: boolean;
  readonly keptForms: Pick<KeptForms, 'keep'>;
  readonly sessionList: Pick<SessionList, 'of'>;
  readonly sessions: Pick<BrowserSessions, 'current' | 'findActive'>;
  readonly endingChoices: Pick<EndingChoices, 'of'>;
}) {
  const { passwords, keptForms, sessionList, sessions, endingChoices } = parts;

  async function otherSessions(ctx: Context, account: Account): Promise<number> {
    const own = await sessions.current(ctx);
    const uids = (await sessionList.of(account)).map(({ uid }) => uid);
    return (await sessions.findActive(uids.filter((uid) => uid !== own?.uid))).size;
  }

  /** Lists everything else that opens the account or acts for it, each as a checkbox. */
  async function choices(
    ctx: Context,
    account: Account,
    wayId: string,
  ): Promise<readonly EndingChoice[]> {
    const [others, rest] = await Promise.all([
      otherSessions(ctx, account),
      endingChoices.of(ctx, account),
    ]);
    const own = { value: 'yes', since: undefined, isChosen: false };
    const password = { ...own, name: PASSWORD, verb: 'remove', what: 'the password' };
    const session = { ...own, name: SESSIONS, verb: 'sign out', what: browsersInWords(others) };
    return [
      ...(passwords && account.hasPassword ? [password] : []),
      ...(others > 0 ? [session] : []),
      ...rest.filter(({ value }) => value !== wayId),
    ];
  }

  return {
    choices,

    /**
     * Returns the path to redirect to after a user's first sign-in with a provider.
     *
     * @param to.wayId the `id` of that provider's `WayHeld`.
     * @param to.onward the original target: returned if there is nothing to ask.
     */
    async path(
      ctx: Context,
      account: Account,
      to: { readonly wayId: string; readonly onward: string },
    ): Promise<string> {
      const { wayId, onward } = to;
      if ((await choices(ctx, account, wayId)).length === 0) return onward;
      const kept = await keptForms.keep(ctx, onward, account.id);
      return `${FIRST_SIGN_IN}?${new URLSearchParams({ [WAY]: wayId, ...(kept && { [ONWARD]: kept }) })}`;
    },
  };
}

const browsersInWords = (browsers: number): string =>
  browsers === 1 ? 'another browser' : `${browsers} other browsers`;
