/** `/stop-recovery`: a user stops a recovery of the account, signed in or with the mailed link. */
import type { Context } from 'koa';
import type { RecoveryWaits } from '../../accounts/password-links/recovery-waits.ts';
import type { Clock } from '../../base/clock.ts';
import { message } from '../../base/message.ts';
import { createSeals } from '../../base/seals.ts';
import { formOf } from '../../provider/form.ts';
import { originInSession, requestOrigin, seeOther } from '../page.ts';
import type { PageKit } from '../page-kit.ts';
import { get, post, SECURITY } from '../routes.ts';
import { accountOf } from '../signed-in.ts';
import { type Moment, toMoment } from '../words/moment.ts';

declare module '../view-data.ts' {
  interface ViewData {
    readonly 'stop-recovery': {
      readonly state: 'asked' | 'stopped' | 'nothing to stop';
      readonly action: string;
      readonly token: string;
    };
  }
}

/** The data that the profile shows while a recovery is pending. */
export interface RecoveryNotice {
  readonly ready: Moment;
  readonly stopUrl: string;
}

/** The signed content of the link to stop a recovery. */
interface StopLink {
  readonly accountId: string;
  /** Milliseconds since the epoch. */
  readonly until: number;
}

const STOP = '/stop-recovery';
const STOP_SIGNED_IN = `${SECURITY}/stop-recovery`;
const STOPPED = message('recovery.stopped-notice');

export type StopLinks = ReturnType<typeof createStopLinks>;

export function createStopLinks(parts: {
  /** The first key signs; links signed with any of the keys are accepted. */
  readonly keys: readonly [string, ...string[]];
  readonly clock: Clock;
}) {
  const { keys, clock } = parts;
  const seals = createSeals('stop recovery', keys);
  return {
    pathOf: (link: StopLink): string => `${STOP}?token=${seals.seal(link)}`,

    find(token: string): StopLink | undefined {
      const link = seals.open<StopLink>(token);
      return link && link.until > clock() ? link : undefined;
    },
  };
}

export type StopRecovery = ReturnType<typeof createStopRecovery>;

export function createStopRecovery(parts: {
  readonly kit: PageKit;
  readonly waits: Pick<RecoveryWaits, 'find' | 'stop'>;
  readonly stopLinks: Pick<StopLinks, 'find'>;
}) {
  const { kit, waits, stopLinks } = parts;

  const drawStop = (ctx: Context, state: 'asked' | 'stopped' | 'nothing to stop', token = ''): Promise<void> => {
    if (state === 'nothing to stop') ctx.status = 410;
    return kit.render(ctx, 'stop-recovery', { state, action: ctx.path, token });
  };

  /** Asks for confirmation: GET must not stop the recovery, because mail programs open links. */
  async function askToStop(ctx: Context): Promise<void> {
    const token = String(ctx.query.token ?? '');
    const link = stopLinks.find(token);
    const wait = link && (await waits.find(link.accountId));
    await drawStop(ctx, wait ? 'asked' : 'nothing to stop', token);
  }

  async function stop(ctx: Context): Promise<void> {
    const link = stopLinks.find(formOf(ctx).get('token') ?? '');
    const isStopped = link && (await waits.stop(link.accountId, requestOrigin(ctx)));
    await drawStop(ctx, isStopped ? 'stopped' : 'nothing to stop');
  }

  async function stopSignedIn(ctx: Context): Promise<void> {
    await waits.stop(accountOf(ctx).id, originInSession(ctx));
    await kit.notices.redirect(ctx, SECURITY, STOPPED);
  }

  /** Redirects users who had to sign in before the form was accepted, and who return with GET. */
  const backToSecurity = (ctx: Context): void => seeOther(ctx, SECURITY);

  return {
    /** Returns undefined if no recovery is pending. */
    async notice(accountId: string): Promise<RecoveryNotice | undefined> {
      const wait = await waits.find(accountId);
      return wait && { ready: toMoment(wait.readyAt), stopUrl: STOP_SIGNED_IN };
    },

    routes: [
      get(STOP, askToStop),
      post(STOP, ...kit.form, stop),
      get(STOP_SIGNED_IN, kit.requireSignedIn, backToSecurity),
      post(STOP_SIGNED_IN, ...kit.ownForm(), stopSignedIn),
    ],
  };
}
