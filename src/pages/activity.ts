/** `/profile/activity`: the activity log of the signed-in user's account, newest entry first. */
import type { Context } from 'koa';
import type { Activity, ActivityRecord } from '../accounts/activity/activity.ts';
import { ACTIONS, describeAction } from '../accounts/activity/activity-words.ts';
import { browserText, deviceIcon } from '../accounts/browser-names.ts';
import { type Message, message } from '../base/message.ts';
import { choiceOf, type ListTools, urlWith } from './lists.ts';
import type { PageKit } from './page-kit.ts';
import { get, type Route } from './routes.ts';
import { accountOf } from './signed-in.ts';
import { toMoment } from './words/moment.ts';

declare module './view-data.ts' {
  interface ViewData {
    readonly activity: {
      readonly entries: readonly ActivityEntry[];
      readonly tools: ListTools;
      /** True if a search or a filter is applied. */
      readonly isPart: boolean;
      /** The URL of the next page; undefined on the last page. */
      readonly olderUrl: string | undefined;
      /** The URL of the first page; undefined on the first page itself. */
      readonly newestUrl: string | undefined;
    };
  }
}

export type ActivityEntry = ReturnType<typeof describeActivity>;

const PATH = '/profile/activity';
const PAGE_SIZE = 50;

export function activityPage(parts: { readonly kit: PageKit; readonly activity: Activity }): Route[] {
  const { kit, activity } = parts;
  async function show(ctx: Context): Promise<void> {
    const before = numberFrom(ctx.query.before);
    const text = textFrom(ctx.query.q);
    const kind = KINDS.find(({ name }) => name === ctx.query.only);
    // Load one entry more than the page shows, to find out whether there is a next page.
    const found = await activity.of(accountOf(ctx).id, {
      limit: PAGE_SIZE + 1,
      ...(before !== undefined && { before }),
      actions: kind && ACTIONS.filter((action) => kind.actions.test(action)),
      text: text || undefined,
    });
    const shown = found.slice(0, PAGE_SIZE);
    const last = found.length > PAGE_SIZE ? shown.at(-1) : undefined;
    const asked = { ...(text && { q: text }), ...(kind && { only: kind.name }) };
    await kit.render(ctx, 'activity', {
      entries: shown.map((record) => describeActivity(record, kit.rightsInWords(ctx))),
      tools: {
        action: PATH,
        kept: [],
        search: text,
        orders: [],
        hasTools: true,
        filters: [{ name: '', label: message('activity.all') }, ...KINDS].map((one) =>
          choiceOf(one, one.name === (kind?.name ?? '')),
        ),
      },
      isPart: text !== '' || kind !== undefined,
      olderUrl: last && urlWith(PATH, { ...asked, before: String(last.id) }),
      newestUrl: before === undefined ? undefined : urlWith(PATH, asked),
    });
  }

  return [get(PATH, kit.requireSignedIn, show)];
}

const KINDS: readonly { readonly name: string; readonly label: Message; readonly actions: RegExp }[] = [
  { name: 'signing-in', label: message('activity.kind-signing-in'), actions: /^(sign|password)/ },
  { name: 'connections', label: message('activity.kind-connections'), actions: /connected|tokens_/ },
  { name: 'api-keys', label: message('activity.kind-api-keys'), actions: /^api_key/ },
  { name: 'clients', label: message('activity.kind-clients'), actions: /^client_/ },
  { name: 'access', label: message('activity.kind-access'), actions: /^member/ },
];

const MAX_SEARCH_LENGTH = 100;

/** Removes NUL bytes, because PostgreSQL refuses them. */
const textFrom = (entered: unknown): string =>
  typeof entered === 'string' ? entered.replaceAll('\0', '').trim().slice(0, MAX_SEARCH_LENGTH) : '';

function numberFrom(entered: unknown): number | undefined {
  return typeof entered === 'string' && /^\d{1,15}$/.test(entered) ? Number(entered) : undefined;
}

export function describeActivity(record: ActivityRecord, rightsInWords: (rights: readonly string[]) => string) {
  const { at, actor, origin, action, details } = record;
  const rights = details.rights && rightsInWords([details.rights].flat().map(String));
  const browser = actor === 'person' ? origin?.browser : undefined;
  return {
    at: toMoment(at),
    ...describeAction({ action, details: { ...details, ...(rights && { rights }) } }),
    /** Who acted: `Firefox on Windows`, or `The operator`. */
    by: browser === undefined ? message(`activity.actor-${actor}`) : browserText(browser),
    /** Undefined if the logged action was not requested by a browser. */
    device: browser === undefined ? undefined : deviceIcon(browser),
    address: origin?.address,
  };
}
