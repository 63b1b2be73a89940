/** `/profile/activity`: what happened to the account of the person who looks, newest first. */
import type { Context } from 'koa';
import { type ActivityEntry, activityInWords } from './activity-words.ts';
import { get, type PageParts, type Route } from './routes.ts';
import { accountOf } from './signed-in.ts';

declare module './view-data.ts' {
  interface ViewData {
    readonly activity: {
      readonly entries: readonly ActivityEntry[];
      /** The next page; absent where these are the oldest. */
      readonly olderUrl: string | undefined;
      /** Back to the first page; absent there. */
      readonly newestUrl: string | undefined;
    };
  }
}

const PATH = '/profile/activity';
const PAGE = 50;

export function activityPage({ host, steps, activity }: PageParts): Route[] {
  async function show(ctx: Context): Promise<void> {
    const before = numberFrom(ctx.query.before);
    // One more than fits: it tells whether there is a next page.
    const limit = PAGE + 1;
    const found = await activity.of(accountOf(ctx).id, {
      limit,
      ...(before !== undefined && { before }),
    });
    const shown = found.slice(0, PAGE);
    const last = found.length > PAGE ? shown.at(-1) : undefined;
    await host.render(ctx, 'activity', {
      entries: shown.map(activityInWords),
      olderUrl: last && `${PATH}?before=${last.id}`,
      newestUrl: before === undefined ? undefined : PATH,
    });
  }

  return [get(PATH, steps.requireSignedIn, show)];
}

function numberFrom(entered: unknown): number | undefined {
  return typeof entered === 'string' && /^\d{1,15}$/.test(entered) ? Number(entered) : undefined;
}
