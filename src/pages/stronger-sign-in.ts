/** `/profile/stronger-sign-in`: where users add a stronger sign-in method than a password. */
import type { Context } from 'koa';
import { type WaysIn, wayInWords } from '../accounts/ways-in.ts';
import { seeOther, visitorIn } from './page.ts';
import type { PageKit } from './page-kit.ts';
import { get, type Route } from './routes.ts';
import { type Demands, STRONGER } from './sign-in/demands.ts';
import type { OfferedMethods } from './sign-in/offered-methods.ts';
import type { WayIn } from './sign-in/upstream-ways.ts';
import { type Moment, momentOf } from './words/moment.ts';

declare module './view-data.ts' {
  interface ViewData {
    readonly 'stronger-sign-in': {
      readonly notice: string | undefined;
      readonly until: Moment;
      readonly isOver: boolean;
      /** True if the user signed in with a provider and it did not prove more than a password. */
      readonly isFromProvider: boolean;
      /** Names of the user's strong sign-in methods; without any, the user adds one here. */
      readonly held: readonly string[];
      /** Undefined if the service does not offer passkeys. */
      readonly addPasskeyUrl: string | undefined;
      readonly linkable: readonly WayIn[];
      readonly linkUrl: string;
    };
  }
}

export function strongerSignInPage(parts: {
  readonly kit: PageKit;
  readonly demands: Pick<Demands, 'of'>;
  readonly waysIn: Pick<WaysIn, 'of'>;
  readonly offered: Pick<OfferedMethods, 'upstream' | 'passkeys'>;
}): Route[] {
  const { kit, demands, waysIn, offered } = parts;
  const { upstream, passkeys } = offered;

  async function show(ctx: Context): Promise<void> {
    const visitor = visitorIn(ctx);
    const demand = await demands.of(ctx, visitor);
    if (!demand) return seeOther(ctx, '/profile');
    // The form of this page can redirect to a provider.
    if (upstream.ways.length > 0) await kit.pageToClient(ctx, async () => {});
    const held = await waysIn.of(visitor.account.id);
    await kit.render(ctx, 'stronger-sign-in', {
      notice: await kit.notices.take(ctx),
      until: momentOf(demand.until),
      isOver: demand.isOver,
      held: held.filter(({ isStrong }) => isStrong).map(wayInWords),
      addPasskeyUrl: passkeys && '/profile/security/passkeys/new',
      linkable: upstream.strongWays,
      isFromProvider: visitor.session.method === 'upstream',
      linkUrl: '/profile/security/ways',
    });
  }

  return [get(STRONGER, kit.requireSignedIn, show)];
}
