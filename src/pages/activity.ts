/** `/profile/activity`: what happened to the account of the person who looks, newest first. */
import type { Context } from 'koa';
import type { Activity, ActivityRecord } from '../accounts/activity/activity.ts';
import { ACTIONS, type Action, wordsOf } from '../accounts/activity/activity-words.ts';
import { browserInWords } from '../accounts/browser-names.ts';
import type { ListTools } from './lists.ts';
import type { PageKit } from './page-kit.ts';
import { get, type Route } from './routes.ts';
import { accountOf } from './signed-in.ts';
import { type Moment, momentOf } from './words/moment.ts';

declare module './view-data.ts' {
  interface ViewData {
    readonly activity: {
      readonly entries: readonly ActivityEntry[];
      readonly tools: ListTools;
      /** Whether it is only what was asked for. */
      readonly isPart: boolean;
      /** The next page; absent where these are the oldest. */
      readonly olderUrl: string | undefined;
      /** Back to the first page; absent there. */
      readonly newestUrl: string | undefined;
    };
  }
}

interface ActivityEntry {
  readonly at: Moment;
  /** `Signed in`, `API key revoked` */
  readonly what: string;
  /** The name of the client, key, organization or warehouse it was about. */
  readonly about: string | undefined;
  /** More about it, such as `ending in x7Qa`. */
  readonly note: string | undefined;
  /** Something that the person may not have done themselves. */
  readonly isWarning: boolean;
  /** `Firefox on Windows`, or `The operator`. */
  readonly by: string;
  /** The network address it came from; absent for what came from no browser. */
  readonly address: string | undefined;
}

const PATH = '/profile/activity';
const PAGE = 50;

export function activityPage(parts: {
  readonly kit: PageKit;
  readonly activity: Activity;
}): Route[] {
  const { kit, activity } = parts;
  async function show(ctx: Context): Promise<void> {
    const before = numberFrom(ctx.query.before);
    const text = textFrom(ctx.query.q);
    const kind = KINDS.find(({ value }) => value === ctx.query.only);
    // One more than fits: it tells whether there is a next page.
    const found = await activity.of(accountOf(ctx).id, {
      limit: PAGE + 1,
      ...(before !== undefined && { before }),
      actions: kind && ACTIONS.filter((action) => kind.has(action)),
      text: text || undefined,
    });
    const shown = found.slice(0, PAGE);
    const last = found.length > PAGE ? shown.at(-1) : undefined;
    const asked = { ...(text && { q: text }), ...(kind && { only: kind.value }) };
    const urlWith = (more: Readonly<Record<string, string>>): string => {
      const query = new URLSearchParams({ ...asked, ...more });
      return query.size === 0 ? PATH : `${PATH}?${query}`;
    };
    await kit.render(ctx, 'activity', {
      entries: shown.map(activityInWords),
      tools: {
        action: PATH,
        kept: [],
        search: text,
        orders: [],
        hasTools: true,
        filters: [{ value: '', label: 'All' }, ...KINDS].map(({ value, label }) => ({
          value,
          label,
          isChosen: value === (kind?.value ?? ''),
        })),
      },
      isPart: text !== '' || kind !== undefined,
      olderUrl: last && urlWith({ before: String(last.id) }),
      newestUrl: before === undefined ? undefined : urlWith({}),
    });
  }

  return [get(PATH, kit.requireSignedIn, show)];
}

/** What can be looked for, by the names of its actions. */
const KINDS: readonly {
  readonly value: string;
  readonly label: string;
  has(action: Action): boolean;
}[] = [
  {
    value: 'signing-in',
    label: 'Signing in and passwords',
    has: (action) => /^(sign|password)/.test(action),
  },
  { value: 'connections', label: 'Connections', has: (action) => /connected|tokens_/.test(action) },
  { value: 'api-keys', label: 'API keys', has: (action) => action.startsWith('api_key') },
  {
    value: 'clients',
    label: 'Clients',
    has: (action) => action.startsWith('client_'),
  },
  { value: 'access', label: 'Access', has: (action) => action.startsWith('member') },
];

/** Characters of a search. */
const LONGEST = 100;

/** Without the NUL byte, which PostgreSQL refuses. */
const textFrom = (entered: unknown): string =>
  typeof entered === 'string' ? entered.replaceAll('\0', '').trim().slice(0, LONGEST) : '';

function numberFrom(entered: unknown): number | undefined {
  return typeof entered === 'string' && /^\d{1,15}$/.test(entered) ? Number(entered) : undefined;
}

function activityInWords(record: ActivityRecord): ActivityEntry {
  const { at, actor, origin } = record;
  return {
    at: momentOf(at),
    ...wordsOf(record),
    by: origin && actor === 'person' ? browserInWords(origin.browser) : ACTORS[actor],
    address: origin?.address,
  };
}

/** Who it was, where it was not a person with a browser. */
const ACTORS: Readonly<Record<ActivityRecord['actor'], string>> = {
  person: 'You',
  operator: 'The operator of this service',
  client: 'The client',
  service: 'This service',
  organization: 'An owner or admin of the organization',
};
