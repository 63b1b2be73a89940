/** The signed-in user as pages see them, and small functions that pages share. */
import type { Context, Middleware } from 'koa';
import type { Account } from '../accounts/account.ts';
import type { Origin } from '../accounts/activity/activity.ts';
import type { Text } from '../base/message.ts';
import { sha256 } from '../base/random-id.ts';
import { requestOrigin, requestState } from '../base/request-state.ts';
import type { BrowserSession, BrowserSessions } from '../provider/browser-sessions.ts';
import { mayAct, type Standing, type Standings } from '../provider/standings.ts';

/** The protection of forms against forgery (host/form-token.ts). */
export interface FormChecks {
  /** Route step after `readForm`: 403 unless the form is ours and was sent from our origin. */
  readonly requireFormToken: Middleware;
  /** Returns the account for which the submitted form was rendered. */
  formAccount(ctx: Context): string | undefined;
  /** Compares the user and session for which a sent form was rendered with the current ones. */
  formSession(ctx: Context, visitor: Visitor | undefined): FormSession;
}

/** Sentences that are shown once after a redirect (forms/notices.ts). */
export interface Notices {
  /** Redirects to a path and query of this service, whose page shows the sentence once. */
  redirect(ctx: Context, url: string, sentence: Text): Promise<void>;
  /** Returns the sentence for this page and the current session, and deletes it. */
  take(ctx: Context): Promise<Text | undefined>;
}

/** `another session`: the same account, but the user has signed in again, or has ended all sessions. */
export type FormSession = 'this session' | 'another session' | 'somebody else';

/** Redirects with GET, even after POST (RFC 9110 §15.4.4). */
export function seeOther(ctx: Context, url: string): void {
  ctx.redirect(url);
  ctx.status = 303;
}

/** Answers GET at the URL of a form: after a sign-in that the POST required, users return to this URL. */
export const backTo = (page: string) =>
  function backToPage(ctx: Context): void {
    seeOther(ctx, `${page}${ctx.search}`);
  };

export { requestOrigin };

/** Returns the origin of a change that requires the session: if the session has ended, nothing is changed. */
export const originInSession = (ctx: Context): Origin => ({
  ...requestOrigin(ctx),
  session: visitorIn(ctx).session,
});

/** The user who is signed in with this browser, and their session. */
export interface Visitor {
  readonly account: Account;
  readonly session: BrowserSession;
  readonly standing: Standing;
}

export interface VisitorParts {
  readonly sessions: Pick<BrowserSessions, 'current'>;
  readonly standings: Pick<Standings, 'of'>;
}

const visitors = requestState<Visitor>('requireSignedIn');

/**
 * Returns the signed-in user, unless the account was suspended or its sessions were ended. The user may need a stronger
 * sign-in, so use this only to name the user, to sign out and to sign in again.
 */
export async function signedInOf(ctx: Context, { sessions, standings }: VisitorParts): Promise<Visitor | undefined> {
  const session = await sessions.current(ctx);
  if (!session) return undefined;
  const { account } = session;
  // Name the account in the request's log line.
  ctx.state.accountId = account.id;
  const visitor = { account, session, standing: await standings.of(session, ctx) };
  visitors.set(ctx, visitor);
  return visitor;
}

/** Returns the signed-in user, unless they need a stronger sign-in first. */
export async function visitorOf(ctx: Context, parts: VisitorParts): Promise<Visitor | undefined> {
  const found = await signedInOf(ctx, parts);
  return found && mayAct(found.standing) ? found : undefined;
}

/**
 * True if the session is still active and belongs to this account. Reads the store again, because
 * the response may outlive the session.
 */
export async function isSignedInAs(
  ctx: Context,
  accountId: string,
  { sessions, standings }: Pick<VisitorParts, 'standings'> & { readonly sessions: Pick<BrowserSessions, 'lookAgain'> },
): Promise<boolean> {
  const session = await sessions.lookAgain(ctx);
  return session?.accountId === accountId && mayAct(await standings.of(session));
}

/** Returns the visitor that an earlier step of this request found, without reading a store. */
export const foundVisitor = visitors.find;

/** Returns the visitor, in the steps after `requireSignedIn`. */
export const visitorIn = visitors.get;

/** Returns the user and the session to which a redirect to a provider is bound. */
export function ownSession(ctx: Context): { readonly accountId: string; readonly sessionUid: string } {
  const { account, session } = visitors.get(ctx);
  return { accountId: account.id, sessionUid: session.uid };
}

/** Identifies a session without revealing anything about it: 22 characters of `[A-Za-z0-9_-]`. */
export const markOf = (visitor: Visitor | undefined): string =>
  sha256(`session ${visitor?.session.uid ?? ''}`).slice(0, 22);
