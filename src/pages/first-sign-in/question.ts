/** After the first sign-in with a provider: asks whether the user recognizes all other access. */
import type { Context } from 'koa';
import type { Account } from '../../accounts/account.ts';
import type { SessionList } from '../../accounts/session-list.ts';
import { message } from '../../base/message.ts';
import type { BrowserSessions } from '../../provider/browser-sessions.ts';
import type { FormDrafts } from '../forms/form-drafts.ts';
import type { EndingChoice, EndingChoices } from '../password/recovery.ts';

export type FirstSignIn = ReturnType<typeof createFirstSignIn>;

export const FIRST_SIGN_IN = '/profile/security/first-sign-in';
/** The URL parameter and the form field that contain the linked provider. */
export const WAY = 'way';
/** The URL parameter and the form field for the target URL, which is kept for this browser. */
export const ONWARD = 'onward';
export const PASSWORD = 'remove_password';
export const SESSIONS = 'end_sessions';

export function createFirstSignIn(parts: {
  readonly passwords: boolean;
  readonly formDrafts: Pick<FormDrafts, 'save'>;
  readonly sessionList: Pick<SessionList, 'of'>;
  readonly sessions: Pick<BrowserSessions, 'current' | 'findActive'>;
  readonly endingChoices: Pick<EndingChoices, 'of'>;
}) {
  const { passwords, formDrafts, sessionList, sessions, endingChoices } = parts;

  async function otherSessions(ctx: Context, account: Account): Promise<number> {
    const own = await sessions.current(ctx);
    const uids = (await sessionList.of(account)).map(({ uid }) => uid);
    return (await sessions.findActive(uids.filter((uid) => uid !== own?.uid))).size;
  }

  /** Lists the password, sessions, other methods, clients and API keys, each as a checkbox. */
  async function choices(ctx: Context, account: Account, methodId: string): Promise<readonly EndingChoice[]> {
    const [others, rest] = await Promise.all([otherSessions(ctx, account), endingChoices.of(ctx, account)]);
    const own = { value: 'yes', since: undefined, isChosen: false, isKept: false };
    const password = { ...own, name: PASSWORD, what: message('ending.password') };
    const browsers = message('ending.browsers', { count: others });
    const session = { ...own, name: SESSIONS, what: browsers };
    return [
      ...(passwords && account.hasPassword ? [password] : []),
      ...(others > 0 ? [session] : []),
      ...rest.filter(({ value }) => value !== methodId),
    ];
  }

  return {
    choices,

    /**
     * Returns the path of the redirect after a user's first sign-in with a provider.
     *
     * @param to.methodId the `id` of that provider's `LinkedMethod`.
     * @param to.onward the original target: returned if there is nothing to ask.
     */
    async path(
      ctx: Context,
      account: Account,
      to: { readonly methodId: string; readonly onward: string },
    ): Promise<string> {
      const { methodId, onward } = to;
      if ((await choices(ctx, account, methodId)).length === 0) return onward;
      const kept = await formDrafts.save(ctx, 'onward', onward, account.id);
      return `${FIRST_SIGN_IN}?${new URLSearchParams({ [WAY]: methodId, ...(kept && { [ONWARD]: kept }) })}`;
    },
  };
}
