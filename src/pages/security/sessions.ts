/** The section *Sessions* of `/profile/security`, which lists sessions and ends one session or all others. */
import type { Context } from 'koa';
import type { AccountRegistry } from '../../accounts/account-registry.ts';
import type { Activity, NewActivity, Origin } from '../../accounts/activity/activity.ts';
import { browserText, deviceIcon } from '../../accounts/browser-names.ts';
import { type SessionList, sessionDetails } from '../../accounts/session-list.ts';
import { message } from '../../base/message.ts';
import type { BrowserSessions } from '../../provider/browser-sessions.ts';
import { backToSecurity, originInSession, seeOther } from '../page.ts';
import type { PageKit } from '../page-kit.ts';
import { get, post, SECURITY } from '../routes.ts';
import type { BrowserSignIns } from '../sign-in/browser-sign-ins.ts';
import { accountOf } from '../signed-in.ts';
import { toMoment } from '../words/moment.ts';

const ONE = `${SECURITY}/sessions/:uid/sign-out`;
/** The query parameter that says how many sessions the earlier pages have shown. */
const FROM = 'sessions_from';
const EVERYWHERE = `${SECURITY}/sign-out-everywhere`;
/** Further pages show the other sessions, so that no attacker can hide a session behind later ones. */
const PAGE_SIZE = 25;
const MAX_FROM = 100_000;
const SIGNED_OUT_THERE = message('security.signed-out-there');
const ALREADY_SIGNED_OUT = message('security.already-signed-out-there');

export type SessionsSection = ReturnType<typeof createSessionsSection>;

export function createSessionsSection(parts: {
  readonly kit: PageKit;
  readonly accounts: Pick<AccountRegistry, 'endSessions'>;
  readonly activity: Pick<Activity, 'record'>;
  readonly sessions: Pick<BrowserSessions, 'current' | 'findActive'>;
  readonly sessionList: Pick<SessionList, 'of' | 'find' | 'end'>;
  readonly signIns: Pick<BrowserSignIns, 'keep'>;
}) {
  const { kit, accounts, activity, sessions, sessionList, signIns } = parts;

  /**
   * Returns a page of the active sessions, the current session first. Reads only the sessions of this page from the
   * token store, because a user may have started thousands.
   */
  async function pageOf(ctx: Context, from: number) {
    const [own, recorded] = await Promise.all([
      sessions.current(ctx),
      sessionList.of(accountOf(ctx), PAGE_SIZE + 1, from),
    ]);
    const others = recorded.slice(0, PAGE_SIZE).filter(({ uid }) => uid !== own?.uid);
    const current = from === 0 && own ? await sessionList.find(own.uid) : undefined;
    const begun = current ? [current, ...others] : others;
    const active = await sessions.findActive(begun.map(({ uid }) => uid));
    const rows = begun.flatMap(({ uid, begunAt, origin }) => {
      const lastSeen = active.get(uid)?.lastSeen;
      if (!lastSeen) return [];
      const row = {
        browser: browserText(origin.browser),
        device: deviceIcon(origin.browser),
        address: origin.address,
        signedIn: toMoment(begunAt),
        lastSeen: toMoment(lastSeen > begunAt ? lastSeen : begunAt),
        isThis: uid === own?.uid,
        signOutUrl: `${SECURITY}/sessions/${uid}/sign-out`,
      };
      return [row];
    });
    return { rows, isMore: recorded.length > PAGE_SIZE };
  }

  const entryOf = (
    ctx: Context,
    done: Pick<NewActivity, 'action' | 'details'>,
    origin: Origin = originInSession(ctx),
  ): NewActivity => ({ ...done, actor: 'person', accountId: accountOf(ctx).id, origin });

  /** Adds 1 to the generation, as the end of all sessions did for the account: `record` refuses an old generation. */
  function originAfterEnd(ctx: Context): Origin {
    const { session, ...origin } = originInSession(ctx);
    return { ...origin, ...(session && { session: { ...session, generation: session.generation + 1 } }) };
  }

  async function signOutThere(ctx: Context): Promise<void> {
    const account = accountOf(ctx);
    const uid = String(ctx.params.uid);
    if (uid === (await sessions.current(ctx))?.uid) return seeOther(ctx, '/logout');
    const ended = await sessionList.find(uid);
    const isEnded =
      ended?.accountId === account.id &&
      (await sessionList.end(account.id, uid, (tx) => {
        const done = { action: 'signed_out_elsewhere', details: sessionDetails(ended) } as const;
        return activity.record(entryOf(ctx, done), tx);
      }));
    await kit.notices.redirect(ctx, SECURITY, isEnded ? SIGNED_OUT_THERE : ALREADY_SIGNED_OUT);
  }

  async function signOutEverywhere(ctx: Context): Promise<void> {
    const account = accountOf(ctx);
    const ended = await accounts.endSessions(account.id, (tx) =>
      activity.record(entryOf(ctx, { action: 'signed_out_everywhere' }, originAfterEnd(ctx)), tx),
    );
    await signIns.keep(ctx, ended);
    await kit.notices.redirect(ctx, SECURITY, message('security.signed-out-others'));
  }

  return {
    signOutEverywhereUrl: EVERYWHERE,

    async view(ctx: Context) {
      const from = Math.min(Math.max(0, Number.parseInt(String(ctx.query[FROM]), 10) || 0), MAX_FROM);
      const [session, { rows, isMore }] = await Promise.all([sessions.current(ctx), pageOf(ctx, from)]);
      const signedIn = toMoment(new Date((session?.signedInAt ?? 0) * 1000));
      const next = new URLSearchParams({ [FROM]: String(from + PAGE_SIZE) });
      const sessionPages = {
        firstUrl: from > 0 ? `${SECURITY}#sessions` : undefined,
        nextUrl: isMore ? `${SECURITY}?${next}#sessions` : undefined,
      };
      return { signedIn, sessions: rows, sessionPages };
    },

    routes: [
      get(ONE, kit.requireSignedIn, backToSecurity),
      post(ONE, ...kit.ownForm(), signOutThere),
      get(EVERYWHERE, kit.requireSignedIn, backToSecurity),
      post(EVERYWHERE, ...kit.ownForm(), signOutEverywhere),
    ],
  };
}
