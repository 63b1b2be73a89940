/** `/profile/security`: the sign-in methods, sessions, password and mail settings of a user. */
import type { Context } from 'koa';
import type { AccountRegistry } from '../../accounts/account-registry.ts';
import { UNWANTED_MAIL, type UnwantedMail } from '../../accounts/mail/account-mail.ts';
import type { PasswordChanges } from '../../accounts/password-links/password-changes.ts';
import { TooManyPasswords } from '../../accounts/passwords/work.ts';
import type { Connections } from '../../authorizations/connections.ts';
import type { Disconnect } from '../../authorizations/endings.ts';
import { isMessage, type Message, message } from '../../base/message.ts';
import { Refusal } from '../../base/refusal.ts';
import { formOf } from '../../provider/form.ts';
import { type Answer, formRoutes, problemOf, type Said } from '../form-step.ts';
import { originInSession, seeOther } from '../page.ts';
import type { PageKit } from '../page-kit.ts';
import { get, type Route, SECURITY } from '../routes.ts';
import type { BrowserSignIns } from '../sign-in/browser-sign-ins.ts';
import { isPaused, type PasswordCheck, passwordProblem, sayBusy } from '../sign-in/password-check.ts';
import { accountOf } from '../signed-in.ts';
import type { SessionsSection } from './sessions.ts';
import type { SignInMethodsPart } from './sign-in-methods.ts';

declare module '../view-data.ts' {
  interface ViewData {
    readonly security: Said &
      Awaited<ReturnType<SessionsSection['view']>> &
      Awaited<ReturnType<SignInMethodsPart['view']>> & {
        readonly email: string;
        /** Mails that the user can switch off; undefined if the service sends no mail. */
        readonly mail:
          | readonly { readonly value: UnwantedMail; readonly label: Message; readonly isWanted: boolean }[]
          | undefined;
        readonly mailUrl: string;
        readonly changePasswordUrl: string;
        readonly signOutEverywhereUrl: string;
        /** The number of the user's connections. The form can end them together with the change of the password. */
        readonly connections: number;
        readonly isEndingConnections: boolean;
      };
  }
}

const PASSWORD = `${SECURITY}/password`;
const MAIL = `${SECURITY}/mail`;
const MAIL_FIELD = 'mail';

/** The values of the page's forms, except passwords. */
interface Typed {
  readonly unwantedMail?: readonly UnwantedMail[];
  readonly isEndingConnections?: boolean;
}

export function securityPage(parts: {
  readonly kit: PageKit;
  readonly accounts: Pick<AccountRegistry, 'setUnwantedMail'>;
  readonly connections: Pick<Connections, 'listOf'>;
  readonly sessionsSection: SessionsSection;
  readonly signInMethodsPart: SignInMethodsPart;
  readonly sendsMail: boolean;
  /** False for a service without passwords. */
  readonly passwords: boolean;
  readonly checkPassword: PasswordCheck;
  readonly passwordChanges: Pick<PasswordChanges, 'change'>;
  readonly disconnect: Disconnect;
  readonly signIns: Pick<BrowserSignIns, 'keep'>;
}): Route[] {
  const { kit, accounts, connections, sessionsSection, signInMethodsPart, sendsMail, passwords } = parts;
  const { checkPassword, passwordChanges, disconnect, signIns } = parts;

  async function draw(ctx: Context, typed: Typed, said: Said): Promise<void> {
    const account = accountOf(ctx);
    const { unwantedMail = account.unwantedMail, isEndingConnections = false } = typed;
    const [sessions, connected, methods] = await Promise.all([
      sessionsSection.view(ctx),
      connections.listOf(account.id),
      signInMethodsPart.view(ctx),
    ]);
    const mail = UNWANTED_MAIL.map((value) => ({
      value,
      label: message(`security.mail-${value}`),
      isWanted: !unwantedMail.includes(value),
    }));
    await kit.render(ctx, 'security', {
      ...said,
      email: account.email,
      ...methods,
      ...sessions,
      mail: sendsMail ? mail : undefined,
      mailUrl: MAIL,
      changePasswordUrl: PASSWORD,
      signOutEverywhereUrl: sessionsSection.signOutEverywhereUrl,
      connections: connected.length,
      isEndingConnections,
    });
  }

  const show = async (ctx: Context): Promise<void> =>
    draw(ctx, {}, { notice: await kit.notices.take(ctx), problems: [] });

  const page = { isForEverybody: false, stored: () => ({ page: SECURITY }), draw };

  const choosingMail = formRoutes<Typed>(kit, {
    ...page,
    path: MAIL,
    read: (form) => ({ unwantedMail: UNWANTED_MAIL.filter((kind) => !form.getAll(MAIL_FIELD).includes(kind)) }),
    async save(ctx, { unwantedMail = [] }) {
      const { id, unwantedMail: before } = accountOf(ctx);
      // Keep the choices for kinds of mail that only a later version of the service knows.
      const others = before.filter((kind) => UNWANTED_MAIL.every((known) => known !== kind));
      await accounts.setUnwantedMail(id, [...unwantedMail, ...others]);
      return { url: SECURITY, said: message('security.mail-saved') };
    },
  });

  const changingPassword = formRoutes<Typed>(kit, {
    ...page,
    path: PASSWORD,
    // The form itself asks for the current password, even after a recent sign-in, so that a stolen session is not
    // enough to change the password.
    isUrgent: true,
    read: (form) => ({ isEndingConnections: form.get('end_connections') === 'yes' }),
    fieldOf: ({ code }) => ({ field: code }),
    async save(ctx, { isEndingConnections }) {
      const account = accountOf(ctx);
      const form = formOf(ctx);
      const password = form.get('current_password') ?? '';
      const checked = await checkPassword(ctx, { email: account.email, password, accountId: account.id });
      if (isMessage(checked)) {
        return refusedIn(ctx, 'current-password', isPaused(ctx) ? checked : message('security.wrong-password'));
      }
      try {
        const origin = originInSession(ctx);
        const changed = await passwordChanges.change(account, form.get('new_password') ?? '', origin, async (tx) => {
          if (isEndingConnections) await disconnect({ accountId: account.id }, origin, tx);
        });
        await signIns.keep(ctx, changed, { what: 'password_changed' });
        const said = message('security.password-changed', { disconnected: String(isEndingConnections) });
        return { url: SECURITY, said };
      } catch (error) {
        if (!(error instanceof Refusal || error instanceof TooManyPasswords)) throw error;
        return refusedIn(ctx, 'new-password', error instanceof Refusal ? passwordProblem(error) : sayBusy(ctx, error));
      }
    },
  });

  /** Password managers open `/.well-known/change-password` (W3C, A Well-Known URL for Changing Passwords). */
  const toPage = (ctx: Context): void => seeOther(ctx, `${SECURITY}#new-password`);

  return [
    get(SECURITY, kit.requireSignedIn, show),
    ...(passwords ? [get('/.well-known/change-password', toPage), ...changingPassword] : []),
    ...signInMethodsPart.routes,
    ...sessionsSection.routes,
    ...choosingMail,
  ];
}

/** Keeps the status 429 or 503 that the check of the password has set. */
const refusedIn = (ctx: Context, field: string, text: Message): Answer<Typed> => ({
  problems: [problemOf(field, text)],
  status: isPaused(ctx) ? ctx.status : 422,
});
