/** `/profile/security`: changing the password, and signing out everywhere. */
import type { Context } from 'koa';
import type { NewActivity } from '../accounts/activity/activity.ts';
import { browserInWords } from '../accounts/browser-names.ts';
import { UNWANTED_MAIL, type UnwantedMail } from '../accounts/mail/account-mail.ts';
import { TooManyPasswords } from '../accounts/passwords/work.ts';
import { sessionDetails } from '../accounts/session-list.ts';
import { endConnections } from '../authorizations/endings.ts';
import { Refusal } from '../base/refusal.ts';
import { formOf } from '../provider/form.ts';
import { originInSession, originOf, seeOther } from './page.ts';
import { type PasskeyList, passkeyList } from './passkeys/passkeys.ts';
import { type RecoveryNotice, recoveryNotice } from './password/recovery-wait.ts';
import { get, type PageParts, post, type Route } from './routes.ts';
import { isPaused, sayBusy } from './sign-in/password-check.ts';
import { signInWaysRoutes, type WaysView, waysView } from './sign-in-ways.ts';
import { accountOf, NOTHING_SENT, typedOf } from './signed-in.ts';
import { fromOf } from './words/browser.ts';
import { type Moment, momentOf } from './words/moment.ts';
import { connectionsInWords } from './words/reached.ts';

declare module './view-data.ts' {
  interface ViewData {
    readonly security: {
      readonly notice: string | undefined;
      readonly recovery: RecoveryNotice | undefined;
      readonly email: string;
      /** How they sign in. */
      readonly ways: WaysView;
      /** Absent where nobody signs in with one. */
      readonly passkeys: PasskeyList | undefined;
      readonly signedIn: Moment;
      /** This one first, then the latest. */
      readonly sessions: readonly SessionRow[];
      /** What is mailed and may be switched off; absent where no mail is sent. */
      readonly mail: readonly MailChoice[] | undefined;
      readonly mailUrl: string;
      readonly changePasswordUrl: string;
      readonly signOutEverywhereUrl: string;
      /** What could be disconnected at the same time: `all 3 clients that act for you`. */
      readonly connections: string | undefined;
      readonly isEndingConnections: boolean;
      readonly problems: readonly FormProblem[];
      readonly currentProblem: string | undefined;
      readonly newProblem: string | undefined;
    };
  }
}

interface MailChoice {
  readonly value: UnwantedMail;
  readonly label: string;
  readonly isWanted: boolean;
}

const MAIL: Readonly<Record<UnwantedMail, string>> = {
  new_device: 'A browser that is not known yet signs in',
  new_connection: 'A client begins to act for me',
  new_api_key: 'An API key is created',
};

interface SessionRow {
  /** `Firefox on Windows` */
  readonly browser: string;
  readonly address: string;
  readonly signedIn: Moment;
  readonly lastSeen: Moment;
  readonly isThis: boolean;
  readonly signOutUrl: string;
}

const PATH = '/profile/security';
const SESSION = `${PATH}/sessions/:uid/sign-out`;
const PASSWORD = `${PATH}/password`;
const MAILS = `${PATH}/mail`;
const MAIL_SAVED = 'What is mailed to you is saved.';
const EVERYWHERE = `${PATH}/sign-out-everywhere`;
const CHANGED = 'Your password is changed, and every other browser is signed out.';
const CHANGED_AND_DISCONNECTED =
  'Your password is changed, every other browser is signed out, and nothing acts for you any more.';
const SIGNED_OUT_THERE = 'That browser is signed out.';
const SIGNED_OUT = 'Every other browser is signed out. This one stays signed in.';

interface Refused {
  readonly current?: string;
  readonly new?: string;
  readonly isEndingConnections?: boolean;
}

export function securityPage(parts: PageParts): Route[] {
  const { host, accounts, activity, sessions, sessionList, connections, disconnect } = parts;
  const { requireSignedIn, ownForm } = parts.steps;

  /** Where the person is signed in now: what was noted, as far as the token store still has it. */
  async function sessionsOf(ctx: Context): Promise<SessionRow[]> {
    const begun = await sessionList.of(accountOf(ctx));
    const [own, active] = await Promise.all([
      sessions.current(ctx),
      sessions.findActive(begun.map(({ uid }) => uid)),
    ]);
    const rows = begun.flatMap(({ uid, begunAt, origin }) => {
      const lastSeen = active.get(uid)?.lastSeen;
      if (!lastSeen) return [];
      const row: SessionRow = {
        browser: browserInWords(origin.browser),
        address: origin.address,
        signedIn: momentOf(begunAt),
        lastSeen: momentOf(lastSeen > begunAt ? lastSeen : begunAt),
        isThis: uid === own?.uid,
        signOutUrl: `${PATH}/sessions/${uid}/sign-out`,
      };
      return [row];
    });
    return rows.sort((a, b) => Number(b.isThis) - Number(a.isThis));
  }

  const entryOf = (ctx: Context, done: Pick<NewActivity, 'action' | 'details'>): NewActivity => ({
    ...done,
    actor: 'person',
    accountId: accountOf(ctx).id,
    origin: originOf(ctx),
  });

  async function signOutThere(ctx: Context): Promise<void> {
    const account = accountOf(ctx);
    const uid = String(ctx.params.uid);
    if (uid === (await sessions.current(ctx))?.uid) return seeOther(ctx, '/logout');
    const ended = (await sessionList.of(account)).find((one) => one.uid === uid);
    const isEnded =
      ended !== undefined &&
      (await sessionList.end(account.id, uid, (tx) => {
        const done = { action: 'signed_out_elsewhere', details: sessionDetails(ended) } as const;
        return activity.record(entryOf(ctx, done), tx);
      }));
    if (isEnded) await host.notices.tell(ctx, PATH, SIGNED_OUT_THERE);
  }

  async function draw(ctx: Context, refused: Refused = {}): Promise<void> {
    const account = accountOf(ctx);
    const [session, listed, connected, ways, passkeys, recovery] = await Promise.all([
      sessions.current(ctx),
      sessionsOf(ctx),
      connections.listOf(account.id),
      waysView(ctx, parts),
      passkeyList(parts, account),
      recoveryNotice(parts, account.id),
    ]);
    await host.render(ctx, 'security', {
      notice: typedOf(ctx) ? NOTHING_SENT : await host.notices.take(ctx),
      recovery,
      email: account.email,
      ways,
      passkeys,
      signedIn: momentOf(new Date((session?.signedInAt ?? 0) * 1000)),
      sessions: listed,
      mail: parts.mail && UNWANTED_MAIL.map((value) => choiceOf(value, account.unwantedMail)),
      mailUrl: MAILS,
      changePasswordUrl: PASSWORD,
      signOutEverywhereUrl: EVERYWHERE,
      connections: connectionsInWords(connected.length),
      isEndingConnections: refused.isEndingConnections ?? false,
      problems: [
        ...(refused.current ? [{ field: 'current-password', message: refused.current }] : []),
        ...(refused.new ? [{ field: 'new-password', message: refused.new }] : []),
      ],
      currentProblem: refused.current,
      newProblem: refused.new,
    });
  }

  async function refuse(ctx: Context, refused: Refused): Promise<void> {
    // A pause after too many stays one.
    if (!isPaused(ctx)) ctx.status = 422;
    await draw(ctx, refused);
  }

  const show = (ctx: Context): Promise<void> =>
    draw(ctx, { isEndingConnections: typedOf(ctx)?.get('end_connections') === 'yes' });

  /** The current one is asked for here, however recent the sign-in. */
  async function changePassword(ctx: Context): Promise<void> {
    const account = accountOf(ctx);
    const form = formOf(ctx);
    const isEndingConnections = form.get('end_connections') === 'yes';
    const password = form.get('current_password') ?? '';
    const { email, id: accountId } = account;
    const checked = await parts.checkPassword(ctx, { email, password, accountId });
    if (typeof checked === 'string') {
      const current = isPaused(ctx) ? checked : 'This is not your current password.';
      return refuse(ctx, { current, isEndingConnections });
    }
    try {
      const origin = originInSession(ctx);
      const newPassword = form.get('new_password') ?? '';
      const ending = isEndingConnections ? endConnections(disconnect, origin) : undefined;
      const changed = await parts.passwordChanges.change(account, newPassword, origin, ending);
      await sessions.confirm(ctx, changed, 'password');
      parts.devices.remember(ctx, changed);
      parts.mail?.tell(accountId, 'password_changed', fromOf(ctx));
      const said = isEndingConnections ? CHANGED_AND_DISCONNECTED : CHANGED;
      await host.notices.tell(ctx, PATH, said);
    } catch (error) {
      if (!(error instanceof Refusal || error instanceof TooManyPasswords)) throw error;
      const problem = error instanceof Refusal ? error.remedy : sayBusy(ctx, error);
      await refuse(ctx, { new: problem, isEndingConnections });
    }
  }

  async function chooseMail(ctx: Context): Promise<void> {
    const wanted = formOf(ctx).getAll('mail');
    const unwanted = UNWANTED_MAIL.filter((kind) => !wanted.includes(kind));
    await accounts.setUnwantedMail(accountOf(ctx).id, unwanted);
    await host.notices.tell(ctx, PATH, MAIL_SAVED);
  }

  async function signOutEverywhere(ctx: Context): Promise<void> {
    const account = accountOf(ctx);
    const ended = await accounts.endSessions(account.id, (tx) =>
      activity.record(entryOf(ctx, { action: 'signed_out_everywhere' }), tx),
    );
    await sessions.renew(ctx, ended);
    parts.devices.remember(ctx, ended);
    await host.notices.tell(ctx, PATH, SIGNED_OUT);
  }

  /** Where password managers look (W3C, A Well-Known URL for Changing Passwords). */
  const toPage = (ctx: Context): void => seeOther(ctx, PATH);

  /** Whoever had to sign in before a form was taken lands at its address. */
  const backToPage = (ctx: Context): void => seeOther(ctx, `${PATH}${ctx.search}`);

  const ofPassword = [
    get('/.well-known/change-password', toPage),
    get(PASSWORD, requireSignedIn, backToPage),
    post(PASSWORD, ...ownForm(), changePassword),
  ];
  return [
    get(PATH, requireSignedIn, show),
    ...(parts.passwords ? ofPassword : []),
    ...signInWaysRoutes(parts, PATH),
    get(SESSION, requireSignedIn, backToPage),
    post(SESSION, ...ownForm(), signOutThere),
    get(MAILS, requireSignedIn, backToPage),
    post(MAILS, ...ownForm(), parts.steps.requireRecentSignIn, chooseMail),
    get(EVERYWHERE, requireSignedIn, backToPage),
    post(EVERYWHERE, ...ownForm(), signOutEverywhere),
  ];
}

const choiceOf = (value: UnwantedMail, unwanted: readonly string[]): MailChoice => ({
  value,
  label: MAIL[value],
  isWanted: !unwanted.includes(value),
});
