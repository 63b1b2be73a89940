/** The signed-in user of a page, and small functions that several pages use. */
import type { Context, Middleware } from 'koa';
import type { Account } from '../accounts/account.ts';
import type { Origin } from '../accounts/activity/activity.ts';
import type { Text } from '../base/message.ts';
import { sha256 } from '../base/random-id.ts';
import { requestOrigin, requestState } from '../base/request-state.ts';
import type { BrowserSession, BrowserSessions } from '../provider/browser-sessions.ts';
import { mayAct, type Standing, type Standings } from '../provider/standings.ts';
import { SECURITY } from './routes.ts';

/** The protection of forms against forgery (host/form-token.ts). */
export interface FormChecks {
  /** Refuses a form with 403 unless this service rendered it and its page sent it. Must run after `readForm`. */
  readonly requireFormToken: Middleware;
  /** Returns the account for which the submitted form was rendered. */
  formAccount(ctx: Context): string | undefined;
  /** Says whether the sent form was rendered for the current user and session. */
  formSession(ctx: Context, visitor: Visitor | undefined): FormSession;
}

export interface Notices {
  /** Redirects to a page of this service, which shows the sentence once. */
  redirect(ctx: Context, url: string, sentence: Text): Promise<void>;
  /** Returns and deletes the notice for this page and the current session. */
  take(ctx: Context): Promise<Text | undefined>;
}

/** `another session`: the same user has signed in again, or ended all sessions, after the form was rendered. */
export type FormSession = 'this session' | 'another session' | 'somebody else';

/** Redirects with GET, even after POST (RFC 9110 §15.4.4). */
export function seeOther(ctx: Context, url: string): void {
  ctx.redirect(url);
  ctx.status = 303;
}

/** Redirects GET for a form's URL to the page: users return to this URL after a sign-in that the POST required. */
export function backToSecurity(ctx: Context): void {
  seeOther(ctx, `${SECURITY}${ctx.search}`);
}

export { requestOrigin };

/** Returns the origin of a change, with the session, so that nothing is changed if the session has ended meanwhile. */
export const originInSession = (ctx: Context): Origin => ({
  ...requestOrigin(ctx),
  session: visitorIn(ctx).session,
});

/** The user who is signed in with this browser. */
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
 * Returns the signed-in user, who may need a stronger sign-in first. So use this only to name the user, to sign out and
 * to sign in again. A suspended user is not signed in.
 */
export async function signedInOf(ctx: Context, { sessions, standings }: VisitorParts): Promise<Visitor | undefined> {
  const session = await sessions.current(ctx);
  if (!session) return undefined;
  const { account } = session;
  ctx.state.accountId = account.id;
  const visitor = { account, session, standing: await standings.of(session, ctx) };
  visitors.set(ctx, visitor);
  return visitor;
}

export async function visitorOf(ctx: Context, parts: VisitorParts): Promise<Visitor | undefined> {
  const found = await signedInOf(ctx, parts);
  return found && mayAct(found.standing) ? found : undefined;
}

/** Returns the signed-in user, if an earlier step of this request has looked up the session. */
export const foundVisitor = visitors.find;

/** Returns the visitor. Use this only in steps after `requireSignedIn`. */
export const visitorIn = visitors.get;

export function ownSession(ctx: Context): { readonly accountId: string; readonly sessionUid: string } {
  const { account, session } = visitors.get(ctx);
  return { accountId: account.id, sessionUid: session.uid };
}

/** Returns a hash that identifies the session and reveals nothing about it: 22 characters of `[A-Za-z0-9_-]`. */
export const markOf = (visitor: Visitor | undefined): string =>
  sha256(`session ${visitor?.session.uid ?? ''}`).slice(0, 22);
