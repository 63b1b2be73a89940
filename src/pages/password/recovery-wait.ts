/** The page of a link that works only after a waiting time; starts the recovery of the account. */
import type { Context } from 'koa';
import type { AccountMail } from '../../accounts/mail/account-mail.ts';
import type { PasswordLink, PasswordLinks } from '../../accounts/password-links/password-links.ts';
import type { RecoveryWait, RecoveryWaits } from '../../accounts/password-links/recovery-waits.ts';
import type { SignInMethods } from '../../accounts/sign-in-methods.ts';
import { type Message, message, type Text } from '../../base/message.ts';
import { formOf } from '../../provider/form.ts';
import { requestOrigin } from '../page.ts';
import type { PageKit } from '../page-kit.ts';
import { post, type Route } from '../routes.ts';
import { anyStrongOf } from '../sign-in/attempt.ts';
import type { WaitingSignIn } from '../sign-in/waiting-sign-in.ts';
import { browserDetails } from '../words/browser-details.ts';
import { inUnits, type Moment, toMoment } from '../words/moment.ts';
import type { StopLinks } from './stop-recovery.ts';

declare module '../view-data.ts' {
  interface ViewData {
    readonly 'recovery-wait': {
      readonly email: string;
      /** The strong sign-in methods that the user has, but may have lost; empty if there are none. */
      readonly methods: Text;
      /** How long the user must wait. */
      readonly wait: { readonly count: number; readonly unit: string };
      /** Undefined if no recovery was started yet. */
      readonly started: { readonly at: Moment; readonly ready: Moment } | undefined;
      /** Where to start the recovery; undefined if it was started, or if no mail can be sent. */
      readonly startUrl: string | undefined;
      readonly token: string;
    };
  }
}

const START = '/password/recovery';
const NOT_MAILED = message('recovery.not-mailed');
const startedUntil = ({ readyAt }: RecoveryWait): Message => message('recovery.started', { ready: toMoment(readyAt) });

/** Makes the callback that mails the user how to stop the recovery that is being started. */
export type MailRecovery = (ctx: Context) => Parameters<RecoveryWaits['start']>[2];

export const createRecoveryMail =
  (parts: {
    readonly issuer: string;
    readonly mail: AccountMail;
    readonly stopLinks: Pick<StopLinks, 'pathOf'>;
  }): MailRecovery =>
  (ctx) =>
  ({ id }, { readyAt, endsAt }) =>
    parts.mail.notify(id, 'recovery_started', {
      ...browserDetails(ctx),
      path: parts.stopLinks.pathOf({ accountId: id, until: endsAt.getTime() }),
      more: [
        message('mail.recovery-ready', { ready: toMoment(readyAt) }),
        message('mail.recovery-cancel', { url: `${parts.issuer}/login` }),
      ],
    });

export type RecoveryWaitPage = ReturnType<typeof createRecoveryWaitPage>;

export function createRecoveryWaitPage(parts: {
  readonly kit: PageKit;
  readonly waits: RecoveryWaits;
  readonly signInMethods: Pick<SignInMethods, 'of'>;
  readonly waiting: Pick<WaitingSignIn, 'path'>;
  readonly passwordLinks: Pick<PasswordLinks, 'find'>;
  /** Undefined if the service sends no mail: then no recovery can be started. */
  readonly mailRecovery: MailRecovery | undefined;
}) {
  const { kit, waits, signInMethods, waiting, passwordLinks, mailRecovery } = parts;

  const startStep = (drawLink: (ctx: Context, token: string) => Promise<void>) =>
    async function start(ctx: Context): Promise<void> {
      const token = formOf(ctx).get('token') ?? '';
      const link = await passwordLinks.find(token);
      // If the link was used, or may be used without a wait, the link's own page says so.
      if (!mailRecovery || !link || !(await waits.mustWait(link))) return drawLink(ctx, token);
      const wait = await waits.start(token, requestOrigin(ctx), mailRecovery(ctx));
      if (wait === undefined) return drawLink(ctx, token);
      const said = wait === 'not informed' ? NOT_MAILED : startedUntil(wait);
      await kit.notices.redirect(ctx, await waiting.path(ctx), said);
    };

  return {
    mustWait: (link: PasswordLink): Promise<boolean> => waits.mustWait(link),

    async draw(ctx: Context, { account }: PasswordLink, token: string): Promise<void> {
      const [wait, held] = await Promise.all([waits.find(account.id), signInMethods.of(account.id)]);
      await kit.render(ctx, 'recovery-wait', {
        email: account.email,
        methods: anyStrongOf(held),
        wait: inUnits(waits.waitSeconds),
        started: wait && { at: toMoment(wait.startedAt), ready: toMoment(wait.readyAt) },
        startUrl: wait || !mailRecovery ? undefined : START,
        token,
      });
    },

    /** @param drawLink renders the page of the link. */
    routes: (drawLink: (ctx: Context, token: string) => Promise<void>): Route[] => [
      post(START, ...kit.form, startStep(drawLink)),
    ],
  };
}
