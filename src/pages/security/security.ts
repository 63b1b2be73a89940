/** `/profile/security`: a user's sign-in methods, sessions and mail choices. */
import type { Context } from 'koa';
import type { Connections } from '../../authorizations/connections.ts';
import { isMessage, type Message, type Text } from '../../base/message.ts';
import { backTo, seeOther } from '../page.ts';
import type { PageKit } from '../page-kit.ts';
import type { PasskeyList } from '../passkeys/passkeys.ts';
import { get, post, type Route, SECURITY } from '../routes.ts';
import { isPaused } from '../sign-in/password-check.ts';
import { accountOf, NOTHING_SENT, typedOf } from '../signed-in.ts';
import type { Moment } from '../words/moment.ts';
import type { MailChoice, MailChoices } from './mail-choices.ts';
import type { ChangePassword, RefusedPassword } from './password-change.ts';
import type { SessionRow, SessionsSection } from './sessions.ts';
import type { MethodsView, SignInMethodsPart } from './sign-in-methods.ts';

declare module '../view-data.ts' {
  interface ViewData {
    readonly security: {
      readonly notice: Text | undefined;
      readonly email: string;
      readonly methods: MethodsView;
      /** Undefined if the service does not offer passkeys. */
      readonly passkeys: PasskeyList | undefined;
      readonly signedIn: Moment;
      /** The current session first, then the others, latest first. */
      readonly sessions: readonly SessionRow[];
      readonly sessionPages: Awaited<ReturnType<SessionsSection['view']>>['sessionPages'];
      /** Mails that can be switched off; undefined if the service sends no mail. */
      readonly mail: readonly MailChoice[] | undefined;
      readonly mailUrl: string;
      readonly changePasswordUrl: string;
      readonly signOutEverywhereUrl: string;
      /** The number of connections of the user; a change of the password can also end them. */
      readonly connections: number;
      readonly isEndingConnections: boolean;
      readonly problems: readonly FormProblem[];
      readonly currentProblem: Message | undefined;
      readonly newProblem: Message | undefined;
    };
  }
}

const PASSWORD = `${SECURITY}/password`;

export function securityPage(parts: {
  readonly kit: PageKit;
  readonly connections: Pick<Connections, 'listOf'>;
  readonly sessionsSection: SessionsSection;
  readonly signInMethodsPart: SignInMethodsPart;
  readonly mailChoices: MailChoices;
  /** Undefined if users have no passwords. */
  readonly changePassword: ChangePassword | undefined;
}): Route[] {
  const { kit, connections, sessionsSection, signInMethodsPart, mailChoices } = parts;

  async function draw(ctx: Context, refused: RefusedPassword = {}): Promise<void> {
    const account = accountOf(ctx);
    const [sessions, connected, methods] = await Promise.all([
      sessionsSection.view(ctx),
      connections.listOf(account.id),
      signInMethodsPart.view(ctx),
    ]);
    await kit.render(ctx, 'security', {
      notice: typedOf(ctx) ? NOTHING_SENT : await kit.notices.take(ctx),
      email: account.email,
      ...methods,
      ...sessions,
      mail: mailChoices.view(account, typedOf(ctx)),
      mailUrl: mailChoices.url,
      changePasswordUrl: PASSWORD,
      signOutEverywhereUrl: sessionsSection.signOutEverywhereUrl,
      connections: connected.length,
      isEndingConnections: refused.isEndingConnections ?? false,
      problems: [
        ...(refused.current ? [{ field: 'current-password', message: refused.current }] : []),
        ...(refused.new ? [{ field: 'new-password', message: refused.new }] : []),
      ],
      currentProblem: refused.current,
      newProblem: refused.new,
    });
  }

  const show = (ctx: Context): Promise<void> =>
    draw(ctx, { isEndingConnections: typedOf(ctx)?.get('end_connections') === 'yes' });

  /** The URL that password managers open (W3C, A Well-Known URL for Changing Passwords). */
  const toPage = (ctx: Context): void => seeOther(ctx, `${SECURITY}#new-password`);

  function passwordRoutes(change: ChangePassword): Route[] {
    async function changePassword(ctx: Context): Promise<void> {
      const answer = await change(ctx);
      if (isMessage(answer)) return kit.notices.redirect(ctx, SECURITY, answer);
      // Keep the 429 or 503 of too many attempts.
      if (!isPaused(ctx)) ctx.status = 422;
      await draw(ctx, answer);
    }

    return [
      get('/.well-known/change-password', toPage),
      get(PASSWORD, kit.requireSignedIn, backTo(SECURITY)),
      post(PASSWORD, ...kit.ownForm(), changePassword),
    ];
  }

  return [
    get(SECURITY, kit.requireSignedIn, show),
    ...(parts.changePassword ? passwordRoutes(parts.changePassword) : []),
    ...signInMethodsPart.routes,
    ...sessionsSection.routes,
    ...mailChoices.routes,
  ];
}
