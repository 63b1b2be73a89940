/** `/profile/security`: changing the password, and signing out everywhere. */
import type { Context } from 'koa';
import { TooManyPasswords } from '../accounts/passwords/work.ts';
import { endConnections } from '../authorizations/endings.ts';
import { formOf } from '../provider/form.ts';
import { Refusal } from '../refusal.ts';
import { connectionsInWords } from './connections-view.ts';
import { type Moment, momentOf } from './moment.ts';
import { originOf, seeOther } from './page.ts';
import { isPaused, sayBusy } from './password-check.ts';
import { get, type PageParts, post, type Route } from './routes.ts';
import { accountOf, NOTHING_SENT, typedOf } from './signed-in.ts';

declare module './view-data.ts' {
  interface ViewData {
    readonly security: {
      readonly notice: string | undefined;
      readonly email: string;
      /** When the password was given in this browser. */
      readonly signedIn: Moment;
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

const PATH = '/profile/security';
const PASSWORD = `${PATH}/password`;
const EVERYWHERE = `${PATH}/sign-out-everywhere`;
const CHANGED = 'Your password is changed, and every other browser is signed out.';
const CHANGED_AND_DISCONNECTED =
  'Your password is changed, every other browser is signed out, and nothing acts for you any more.';
const SIGNED_OUT = 'Every other browser is signed out. This one stays signed in.';

interface Refused {
  readonly current?: string;
  readonly new?: string;
  readonly isEndingConnections?: boolean;
}

export function securityPage(parts: PageParts): Route[] {
  const { host, accounts, activity, sessions, connections, disconnect } = parts;
  const { requireSignedIn, ownForm } = parts.steps;

  async function draw(ctx: Context, refused: Refused = {}): Promise<void> {
    const account = accountOf(ctx);
    const [session, connected] = await Promise.all([
      sessions.current(ctx),
      connections.listOf(account.id),
    ]);
    await host.render(ctx, 'security', {
      notice: typedOf(ctx) ? NOTHING_SENT : await host.notices.take(ctx),
      email: account.email,
      signedIn: momentOf(new Date((session?.signedInAt ?? 0) * 1000)),
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
      const origin = originOf(ctx);
      const newPassword = form.get('new_password') ?? '';
      const ending = isEndingConnections ? endConnections(disconnect, origin) : undefined;
      const changed = await parts.passwordChanges.change(account, newPassword, origin, ending);
      await sessions.signIn(ctx, changed);
      parts.devices.remember(ctx, changed);
      const said = isEndingConnections ? CHANGED_AND_DISCONNECTED : CHANGED;
      await host.notices.tell(ctx, PATH, said);
    } catch (error) {
      if (!(error instanceof Refusal || error instanceof TooManyPasswords)) throw error;
      const problem = error instanceof Refusal ? error.remedy : sayBusy(ctx, error);
      await refuse(ctx, { new: problem, isEndingConnections });
    }
  }

  async function signOutEverywhere(ctx: Context): Promise<void> {
    const account = accountOf(ctx);
    const ended = await accounts.endSessions(account.id, (tx) =>
      activity.record(
        {
          action: 'signed_out_everywhere',
          actor: 'person',
          accountId: account.id,
          origin: originOf(ctx),
        },
        tx,
      ),
    );
    await sessions.renew(ctx, ended);
    parts.devices.remember(ctx, ended);
    await host.notices.tell(ctx, PATH, SIGNED_OUT);
  }

  /** Whoever had to sign in before a form was taken lands at its address. */
  const backToPage = (ctx: Context): void => seeOther(ctx, `${PATH}${ctx.search}`);

  return [
    get(PATH, requireSignedIn, show),
    get(PASSWORD, requireSignedIn, backToPage),
    post(PASSWORD, ...ownForm(), changePassword),
    get(EVERYWHERE, requireSignedIn, backToPage),
    post(EVERYWHERE, ...ownForm(), signOutEverywhere),
  ];
}
