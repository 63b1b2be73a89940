/** What every page is given, and the few things they all do. */
import type { Context } from 'koa';
import type { Account } from '../accounts/account.ts';
import type { AccountRegistry } from '../accounts/account-registry.ts';
import type { Origin } from '../accounts/activity.ts';
import { type BrowserSessions, isAlive } from '../provider/browser-sessions.ts';
import type { Render } from './view-data.ts';

/** The host's part in a page. */
export interface PageHost {
  readonly render: Render;
  /** The value of the hidden field `form_token` of every form. */
  formToken(ctx: Context): string;
}

/** Sends the browser on with GET, whatever the method was (RFC 9110 §15.4.4). */
export function seeOther(ctx: Context, url: string): void {
  ctx.redirect(url);
  ctx.status = 303;
}

/**
 * What to say after a redirect: the words for `?done=…`, never what the query says itself.
 *
 * @param notices by the code that the redirect carried.
 */
export function noticeOf(
  ctx: Context,
  notices: Readonly<Record<string, string>>,
): string | undefined {
  const code = String(ctx.query.done ?? '');
  return Object.hasOwn(notices, code) ? notices[code] : undefined;
}

/** From where this request came, for the activity log. */
export const originOf = (ctx: Context): Origin => ({
  address: ctx.ip,
  browser: ctx.get('user-agent'),
});

/** Who is signed in: their account, unless it was suspended or its sessions were ended since. */
export async function signedInAccount(
  ctx: Context,
  { sessions, accounts }: { sessions: BrowserSessions; accounts: AccountRegistry },
): Promise<Account | undefined> {
  const session = await sessions.current(ctx);
  const account = session && (await accounts.find(session.accountId));
  if (!session || !isAlive(account, session.generation)) return undefined;
  // For the log line of the request.
  ctx.state.accountId = account.id;
  return account;
}
