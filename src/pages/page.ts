/** What pages know of the user who is signed in, and the few things they all do. */
import type { Context, Middleware } from 'koa';
import type { Account } from '../accounts/account.ts';
import type { AccountRegistry } from '../accounts/account-registry.ts';
import type { Origin } from '../accounts/activity/activity.ts';
import { sha256 } from '../base/random-id.ts';
import { originOf, requestState } from '../base/request-state.ts';
import {
  type BrowserSession,
  type BrowserSessions,
  isAlive,
} from '../provider/browser-sessions.ts';
import type { SessionDemands } from '../provider/session-demands.ts';

/** How the forms of pages are protected (host/form-token.ts). */
export interface FormChecks {
  /** Route step after `readForm`: stops with 403 unless the form is ours and was sent from us. */
  readonly requireFormToken: Middleware;
  /** The account for which the page was drawn from which a form is sent. */
  ownerOfForm(ctx: Context): string | undefined;
  /** For whom the page was drawn from which a form is sent, compared with who is signed in now. */
  drawnFor(ctx: Context, visitor: Visitor | undefined): DrawnFor;
}

/** What a page says once, after a redirect (forms/notices.ts). */
export interface Notices {
  /** Sends the browser on to a page of ours, by its path and query, which says this sentence then, and not again. */
  tell(ctx: Context, url: string, sentence: string): Promise<void>;
  /** What this page is to say, to who is there now. */
  take(ctx: Context): Promise<string | undefined>;
}

/** `another session` of the same account: they signed in again since, or signed out everywhere. */
export type DrawnFor = 'this session' | 'another session' | 'somebody else';

/** Sends the browser on with GET, whatever the method was (RFC 9110 §15.4.4). */
export function seeOther(ctx: Context, url: string): void {
  ctx.redirect(url);
  ctx.status = 303;
}

/** Answers GET at the address of a form: a user who had to sign in before it was accepted comes back there. */
export const backTo = (page: string) =>
  function backToPage(ctx: Context): void {
    seeOther(ctx, `${page}${ctx.search}`);
  };

export { originOf };

/** From where comes a change that only who is signed in may make: once their session ended, nobody made it. */
export const originInSession = (ctx: Context): Origin => ({
  ...originOf(ctx),
  session: visitorIn(ctx).session,
});

/** Somebody who is signed in in this browser, and in which of their sessions. */
export interface Visitor {
  readonly account: Account;
  readonly session: BrowserSession;
}

export interface VisitorParts {
  readonly sessions: Pick<BrowserSessions, 'current'>;
  readonly accounts: Pick<AccountRegistry, 'find'>;
}

const visitors = requestState<Visitor>('requireSignedIn');

/** Who is signed in, unless their account was suspended or its sessions were ended since. */
export async function visitorOf(
  ctx: Context,
  { sessions, accounts }: VisitorParts,
): Promise<Visitor | undefined> {
  const session = await sessions.current(ctx);
  const account = session && (await accounts.find(session.accountId));
  if (!session || !isAlive(account, session)) return undefined;
  // For the log line of the request.
  ctx.state.accountId = account.id;
  const visitor = { account, session };
  visitors.set(ctx, visitor);
  return visitor;
}

/**
 * Whether a session of this account is still there, for an answer that takes longer than a session
 * may: the store is asked anew.
 */
export async function isAliveFor(
  ctx: Context,
  accountId: string,
  {
    sessions,
    accounts,
    sessionDemands,
  }: {
    sessions: Pick<BrowserSessions, 'lookAgain'>;
    accounts: Pick<AccountRegistry, 'find'>;
    sessionDemands: Pick<SessionDemands, 'mayAct'>;
  },
): Promise<boolean> {
  const session = await sessions.lookAgain(ctx);
  if (session?.accountId !== accountId) return false;
  if (!isAlive(await accounts.find(accountId), session)) return false;
  return sessionDemands.mayAct(session);
}

/** Who was found before in this request, without asking a store. */
export const foundVisitor = visitors.find;

/** Who is signed in, in the steps after `requireSignedIn`. */
export const visitorIn = visitors.get;

/** Tells one session from the next, and nothing about it: 22 characters of `[A-Za-z0-9_-]`. */
export const markOf = (visitor: Visitor | undefined): string =>
  sha256(`session ${visitor?.session.uid ?? ''}`).slice(0, 22);
