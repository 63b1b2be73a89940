/** The pages of a recovery that needs a wait: how it is started, and how its person stops it. */
import type { Context } from 'koa';
import type { PasswordLink } from '../../accounts/passwords/links.ts';
import type { RecoveryWait } from '../../accounts/passwords/recovery-waits.ts';
import { wayInWords } from '../../accounts/ways-in.ts';
import { formOf } from '../../provider/form.ts';
import { originInSession, originOf, seeOther } from '../page.ts';
import { get, type PageParts, post, type Route } from '../routes.ts';
import { accountOf } from '../signed-in.ts';
import { fromOf } from '../words/browser.ts';
import { durationText, type Moment, momentOf } from '../words/moment.ts';

declare module '../view-data.ts' {
  interface ViewData {
    readonly 'recovery-wait': {
      readonly title: string;
      readonly email: string;
      /** What they sign in with, unless they lost it. */
      readonly ways: readonly string[];
      /** `3 days` */
      readonly wait: string;
      /** Absent where none was started yet. */
      readonly started: { readonly at: Moment; readonly ready: Moment } | undefined;
      /** Where it is started; absent where it was, or no mail could say so. */
      readonly startUrl: string | undefined;
      readonly token: string;
    };
    readonly 'stop-recovery': {
      readonly title: string;
      readonly state: 'asked' | 'stopped' | 'nothing to stop';
      readonly action: string;
      readonly token: string;
    };
  }
}

/** What the profile says while a recovery is under way. */
export interface RecoveryNotice {
  readonly ready: Moment;
  readonly stopUrl: string;
}

/** What the link to stop it carries, under a MAC. */
interface StopLink {
  readonly accountId: string;
  /** Milliseconds since the epoch. */
  readonly until: number;
}

const START = '/password/recovery';
const STOP = '/stop-recovery';
const STOP_SIGNED_IN = '/profile/security/stop-recovery';
const SECURITY = '/profile/security';
const NOT_MAILED =
  'We could not send the email about it, so the recovery was not started. Ask for another link later.';
const STOPPED =
  'The recovery was stopped, and links that were emailed to you no longer work. If you did not start it, someone else may read your email: change the password of your mailbox.';
const startedUntil = ({ readyAt }: RecoveryWait): string =>
  `The recovery was started. From ${momentOf(readyAt).text} on, a link of “Forgot your password?” lets you choose a new password. We emailed you about it.`;

/** @returns undefined where none is under way. */
export async function recoveryNotice(
  { recovery: { waits } }: Pick<PageParts, 'recovery'>,
  accountId: string,
): Promise<RecoveryNotice | undefined> {
  const wait = await waits.find(accountId);
  return wait && { ready: momentOf(wait.readyAt), stopUrl: STOP_SIGNED_IN };
}

/** The page of a link that opens the account only after the wait. */
export async function drawRecoveryWait(
  ctx: Context,
  { host, waysIn, mail, recovery }: PageParts,
  { link: { account }, token }: { readonly link: PasswordLink; readonly token: string },
): Promise<void> {
  const { waits, waitSeconds } = recovery;
  const [wait, held] = await Promise.all([waits.find(account.id), waysIn.of(account.id)]);
  await host.render(ctx, 'recovery-wait', {
    title: 'Recover your account',
    email: account.email,
    ways: held.filter(({ isStrong }) => isStrong).map(wayInWords),
    wait: durationText(waitSeconds),
    started: wait && { at: momentOf(wait.startedAt), ready: momentOf(wait.readyAt) },
    startUrl: wait || !mail ? undefined : START,
    token,
  });
}

export function recoveryWaitPages(
  parts: PageParts,
  drawLink: (ctx: Context, token: string) => Promise<void>,
): Route[] {
  const { host, issuer, clock, mail, waiting, passwordLinks } = parts;
  const { waits, stopLinks } = parts.recovery;

  const stopUrl = (link: StopLink): string => `${STOP}?token=${stopLinks.seal(link)}`;

  async function start(ctx: Context): Promise<void> {
    const token = formOf(ctx).get('token') ?? '';
    const link = await passwordLinks.find(token);
    // The page of the link says what else it is, if it needs no wait (any more) or is used.
    if (!mail || !link || !(await waits.mustWait(link))) return drawLink(ctx, token);
    const wait = await waits.start(token, originOf(ctx), ({ id }, { readyAt, endsAt }) =>
      mail.tell(id, 'recovery_started', {
        ...fromOf(ctx),
        path: stopUrl({ accountId: id, until: endsAt.getTime() }),
        more: [
          `From ${momentOf(readyAt).text} on, a link of “Forgot your password?” sets a new password and removes passkeys.`,
          `Signing in with a passkey or a provider before then cancels it: ${issuer}/login`,
        ],
      }),
    );
    if (wait === undefined) return drawLink(ctx, token);
    const said = wait === 'not informed' ? NOT_MAILED : startedUntil(wait);
    await host.notices.tell(ctx, await waiting.path(ctx), said);
  }

  function stopLinkIn(token: string): StopLink | undefined {
    const link = stopLinks.open<StopLink>(token);
    return link && link.until > clock() ? link : undefined;
  }

  const drawStop = (
    ctx: Context,
    state: 'asked' | 'stopped' | 'nothing to stop',
    token = '',
  ): Promise<void> => {
    if (state === 'nothing to stop') ctx.status = 410;
    const title = state === 'asked' ? 'Stop the recovery of your account?' : TITLES[state];
    return host.render(ctx, 'stop-recovery', { title, state, action: ctx.path, token });
  };

  /** Looking stops nothing, for mail programs look as well. */
  async function askToStop(ctx: Context): Promise<void> {
    const token = String(ctx.query.token ?? '');
    const link = stopLinkIn(token);
    const wait = link && (await waits.find(link.accountId));
    await drawStop(ctx, wait ? 'asked' : 'nothing to stop', token);
  }

  async function stop(ctx: Context): Promise<void> {
    const link = stopLinkIn(formOf(ctx).get('token') ?? '');
    const isStopped = link && (await waits.stop(link.accountId, originOf(ctx)));
    await drawStop(ctx, isStopped ? 'stopped' : 'nothing to stop');
  }

  async function stopSignedIn(ctx: Context): Promise<void> {
    await waits.stop(accountOf(ctx).id, originInSession(ctx));
    await host.notices.tell(ctx, SECURITY, STOPPED);
  }

  /** A person who had to sign in before the form was accepted comes back to this address. */
  const backToSecurity = (ctx: Context): void => seeOther(ctx, SECURITY);

  return [
    post(START, ...parts.steps.form, start),
    get(STOP, askToStop),
    post(STOP, ...parts.steps.form, stop),
    get(STOP_SIGNED_IN, parts.steps.requireSignedIn, backToSecurity),
    post(STOP_SIGNED_IN, ...parts.steps.ownForm(), stopSignedIn),
  ];
}

const TITLES = {
  stopped: 'The recovery was stopped',
  'nothing to stop': 'There is nothing to stop',
} as const;
