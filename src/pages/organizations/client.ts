/** `/profile/organizations/:id/clients/:client`: shows an app's access. Admins can approve or decline the app. */
import type { Context, Middleware } from 'koa';
import type { Organization, Right } from '../../accounts/access/reach.ts';
import { visibleText } from '../../accounts/display-name.ts';
import type { ApprovableClient, ClientStandings } from '../../authorizations/client-standing.ts';
import type { ActingAdmin, IsAsShown, OrganizationEndings } from '../../authorizations/organization-endings.ts';
import type { OrganizationReach } from '../../authorizations/organization-reach.ts';
import type { ConnectingPerson, ReachingClient } from '../../authorizations/reaching.ts';
import type { Clock } from '../../base/clock.ts';
import { type Message, message, type Text } from '../../base/message.ts';
import { holdsSecret } from '../../base/random-id.ts';
import { Refusal } from '../../base/refusal.ts';
import type { Seals } from '../../base/seals.ts';
import { formOf } from '../../provider/form.ts';
import { type Answer, formRoutes, problemOf, type Said } from '../form-step.ts';
import type { PageKit } from '../page-kit.ts';
import type { Route } from '../routes.ts';
import { accountOf } from '../signed-in.ts';
import { type ClientLink, type DescribedStanding, describeStanding, linksOf } from '../words/client-standing.ts';
import { type Moment, momentOrNothing, toMoment } from '../words/moment.ts';
import { type Tile, tileOf } from '../words/tile.ts';
import {
  blockAction,
  byLastUse,
  byName,
  type Kind,
  type Looking,
  last,
  MAX_NAMES,
  makerOf,
  partOf,
  type Reached,
  type ReachPart,
  type ReachRow,
  rightsOf,
  suspended,
  through,
  warning,
} from './reach-parts.ts';

declare module '../view-data.ts' {
  interface ViewData {
    readonly 'organization-client': Said & {
      readonly name: string;
      readonly tile: Tile;
      readonly marks: ReachRow['marks'];
      readonly organization: string;
      readonly url: string;
      readonly maker: Text;
      /** The hosts to which the client redirects users, with commas between them. */
      readonly hosts: string;
      readonly standing: DescribedStanding | undefined;
      /** When a member first connected the client. */
      readonly requested: Moment | undefined;
      /** Says who approved, declined or blocked the client, and when. */
      readonly decided: Message | undefined;
      readonly parts: readonly ReachPart[];
      readonly links: readonly ClientLink[];
      /** Undefined unless the client waits for a decision or was declined. */
      readonly decision:
        | {
            readonly action: string;
            /** A fingerprint of the client, so that the button *Approve* approves exactly what the page showed. */
            readonly shown: string;
            readonly sentence: string;
            readonly maxLength: number;
          }
        | undefined;
      /** Blocks or unblocks the client in the whole organization. */
      readonly block: ReachRow['action'];
    };
  }
}

const MAX_SENTENCE_LENGTH = 200;
/** The hidden field with the fingerprints of the clients that the page showed. */
const SHOWN_FIELD = 'shown';
/** The number of characters of a fingerprint. It may be short, because only this service can make a fingerprint. */
const MARK_LENGTH = 16;
export const NOT_CHANGED = message('organization-policy.not-changed');

/** Makes fingerprints of clients, so that an admin approves a client only as the page showed it. */
export function createMarks(seals: Pick<Seals, 'macsOf'>) {
  /** Returns one fingerprint for each key, the one with the current key first. */
  const marksOf = (organizationId: string, { links: _, ...client }: ApprovableClient): string[] =>
    seals
      // Leave out the links of the client, because an approval stays valid if the links change.
      .macsOf(JSON.stringify(['approval', organizationId, client]))
      .map((mac) => mac.slice(0, MARK_LENGTH));
  return {
    of: (organizationId: string, clients: readonly ApprovableClient[]): string =>
      clients.map((client) => marksOf(organizationId, client)[0]).join('.'),

    /** Returns a function that compares a client with what the page showed, whose fingerprints the form contains. */
    in(organizationId: string, form: URLSearchParams): IsAsShown {
      const marks = new Set((form.get(SHOWN_FIELD) ?? '').split('.'));
      return (client) => marksOf(organizationId, client).some((mark) => marks.has(mark));
    },
  };
}

export interface DecidingParts {
  readonly kit: PageKit;
  readonly clock: Clock;
  readonly clientStandings: Pick<ClientStandings, 'find' | 'approvable'>;
  readonly organizationEndings: OrganizationEndings;
  readonly organizationReach: OrganizationReach;
  readonly marks: ReturnType<typeof createMarks>;
  readonly requireAdmin: Middleware;
  readonly requireStillAdmin: (ctx: Context) => Promise<void>;
  /** Returns the signed-in admin, and the organization that the path names. */
  readonly actor: (ctx: Context) => ActingAdmin & { readonly organization: Organization };
  readonly urlOf: (organization: { readonly id: string }) => string;
}

export function clientRoutes(parts: DecidingParts): Route[] {
  const { kit, clock, clientStandings, organizationEndings, organizationReach, marks, actor, urlOf } = parts;

  /** @throws 404 for a machine client, or if no member has connected the client that the path names */
  async function clientIn(ctx: Context): Promise<ReachingClient> {
    const reach = organizationReach.of(actor(ctx).organization.id);
    const clients = await organizationReach.forPage(accountOf(ctx).id, () =>
      reach.clientsNamed([`${ctx.params.client}`]),
    );
    return clients.find(({ kind }) => kind !== 'machine') ?? ctx.throw(404, 'no such client here');
  }

  async function draw(ctx: Context, { sentence }: Typed, said: Said): Promise<void> {
    const client = await clientIn(ctx);
    const { organization } = actor(ctx);
    const accountId = accountOf(ctx).id;
    const url = urlOf(organization);
    const own = { url: ctx.path, inWords: kit.rightsInWords(ctx), query: ctx.query, now: clock() };
    const looking = { ...own, accountId, organization, warehouse: undefined };
    const [{ asksFirst }, connected, [shown], standing] = await organizationReach.forPage(
      accountId,
      // Run the queries one after the other, because a page may use only one database connection.
      async () =>
        [
          await organizationReach.policyOf(organization.id),
          await organizationReach.of(organization.id).through(client.id, organization.warehouses),
          await clientStandings.approvable([client.id]),
          await clientStandings.find(client.id, accountId),
        ] as const,
    );
    if (!shown) ctx.throw(404, 'this client has just been deleted');
    const everywhere = message('organization-client.block-everywhere', { organization: organization.name });
    const isOpen = client.state === 'waiting' || client.state === 'declined';
    await kit.render(ctx, 'organization-client', {
      ...said,
      name: shown.name,
      tile: tileOf(shown),
      marks: suspended(client),
      organization: organization.name,
      url,
      maker: makerOf(shown.ownerName),
      hosts: shown.hosts.join(', '),
      standing: standing && describeStanding(standing, clock()),
      requested: momentOrNothing(client.requestedAt),
      decided: asksFirst || client.isBlocked ? decisionOf(client) : undefined,
      parts: await Promise.all(
        [warehousePart(client, connected, looking, url), peoplePart(client, connected, looking)].map(({ read }) =>
          read(),
        ),
      ),
      links: linksOf(shown),
      decision: isOpen
        ? { action: ctx.path, shown: marks.of(organization.id, [shown]), sentence, maxLength: MAX_SENTENCE_LENGTH }
        : undefined,
      block: isOpen ? undefined : blockAction(client, { warehouse: undefined, url }, everywhere),
    });
  }

  return formRoutes<Typed>(kit, {
    path: '/profile/organizations/:id/clients/:client',
    admit: [parts.requireAdmin],
    isForEverybody: false,
    read: (form) => ({ decision: form.get('decision') ?? '', sentence: form.get('sentence') ?? '' }),
    stored: () => ({ decision: '', sentence: '' }),
    draw,
    fieldOf: () => ({ field: 'sentence' }),
    check: (_ctx, { decision, sentence }) => (decision === 'decline' ? checkSentence(sentence) : undefined),
    async save(ctx, { decision, sentence }) {
      const client = await clientIn(ctx);
      const by = actor(ctx);
      const decisions = {
        approve: () => organizationEndings.approve(by, client, marks.in(by.organization.id, formOf(ctx))),
        decline: () => organizationEndings.decline(by, client, visibleText(sentence)),
        block: () => organizationEndings.block(by, client),
      };
      const chosen = Object.hasOwn(decisions, decision) && (decision as keyof typeof decisions);
      try {
        // Decide only about a client that is not blocked, because a decision does not end a block.
        if (chosen && !client.isBlocked && (await decisions[chosen]())) {
          const said = message(`organization-decision.done-${chosen}`, { app: client.name });
          return { url: urlOf(by.organization), said };
        }
      } catch (error) {
        if (!(error instanceof Refusal && error.code === 'client_changed')) throw error;
        return { status: 409, said: [message('organization-decision.changed')] };
      }
      await parts.requireStillAdmin(ctx);
      return { status: 409, said: [NOT_CHANGED] };
    },
  });
}

interface Typed {
  readonly decision: string;
  readonly sentence: string;
}

function checkSentence(typed: string): Answer<Typed> | undefined {
  if (holdsSecret(typed)) return { problems: [problemOf('sentence_secret', message('names.secret'))] };
  if (typed.trim() === '' || visibleText(typed) !== undefined) return undefined;
  const text = message('organization-decision.too-long', { max: MAX_SENTENCE_LENGTH });
  return { problems: [problemOf('sentence_invalid', text)] };
}

type App = Pick<ReachingClient, 'id' | 'state' | 'isSuspended' | 'isBlocked' | 'blockedIn' | 'count'>;

interface WarehouseRow extends Reached {
  readonly name: string;
  /** The names of the members through whom the app has access. Members that were not loaded are missing. */
  readonly people: readonly string[];
  readonly block: ReachingClient['blockedIn'][number] | undefined;
}

type PersonRow = Reached & ConnectingPerson;

/** False if a policy, a block or a suspension leaves the app without any access. */
const isIn = ({ state, isSuspended }: App): boolean => state === 'admitted' && !isSuspended;

/** Says how many members were read, if the app has more. */
const latest = ({ count }: App, connected: readonly ConnectingPerson[]): Message | undefined =>
  count > connected.length ? message('organization-client.latest', { count: connected.length }) : undefined;

/**
 * Lists the warehouses that the app can access or in which it is blocked, with links to block and unblock it. If not
 * all members who have connected the app were loaded, lists all warehouses, because the app may have access to any.
 */
function warehousePart(app: App, connected: readonly ConnectingPerson[], looking: Looking, url: string) {
  const note = latest(app, connected);
  const blocks = new Map(app.blockedIn.map((block) => [block.id, block]));
  const holders = new Map<string, { people: string[]; rights: Right[] }>();
  for (const { name, reaches } of connected) {
    for (const { id, rights } of reaches) {
      const all = holders.get(id) ?? { people: [], rights: [] };
      all.people.push(name);
      all.rights.push(...rights);
      holders.set(id, all);
    }
  }
  const rows = looking.organization.warehouses.flatMap(({ id, name }): WarehouseRow[] => {
    const [block, held] = [blocks.get(id), holders.get(id)];
    if (!held && !block && !note) return [];
    return [{ at: id, id, name, block, people: [], rights: [], ...held }];
  });
  const unknown = note && message('organization.unknown');
  const kind = { ...WAREHOUSES, heading: message(`organization-client.${isIn(app) ? 'can' : 'could'}-access`), note };
  return partOf(kind, whole(rows), looking, ({ id, name, rights, people, block }) => ({
    name,
    url: `${url}?warehouse=${id}`,
    role: undefined,
    detail: block ? blockedBy(new Date(block.at), block.by) : '',
    marks: block ? [warning('blocked')] : [],
    facts: [
      {
        label: message('organization-client.rights'),
        text: (block ? '' : rightsOf(rights, looking) || unknown) || message('organization.no-rights'),
      },
      {
        label: message('organization-client.through'),
        text: (people.length === 0 && unknown) || through({ people, count: people.length }),
      },
    ],
    action:
      app.isBlocked && !block
        ? undefined
        : blockAction(
            { id: app.id, isBlocked: false, isBlockedThere: block !== undefined },
            { url, warehouse: { id } },
            message('organization-client.block-here'),
          ),
  }));
}

/** Lists the members who have connected the app, and what the app can access through each of them. */
function peoplePart(app: App, connected: readonly ConnectingPerson[], looking: Looking) {
  const names = new Map(looking.organization.warehouses.map(({ id, name }) => [id, name]));
  /** If the app has no access, leave out no warehouse: the list then shows what the app could access. */
  const blocked = new Set(isIn(app) ? app.blockedIn.map(({ id }) => id) : []);
  /** Groups the warehouses by rights, as in `Hamburg, Riga (see, change)`, and leaves out blocked warehouses. */
  const placesOf = ({ reaches }: PersonRow): string[] => {
    const open = reaches.filter(({ id }) => !blocked.has(id));
    return [...Map.groupBy(open, ({ rights }) => rightsOf(rights, looking))].map(([rights, all]) => {
      const shown = all.slice(0, MAX_NAMES).map(({ id }) => names.get(id) ?? '');
      return `${shown.join(', ')}${all.length > MAX_NAMES ? ` +${all.length - MAX_NAMES}` : ''} (${rights})`;
    });
  };
  return partOf<PersonRow>(
    { ...PEOPLE, note: latest(app, connected) },
    whole(connected.map((person) => ({ at: person.id, rights: [], ...person }))),
    looking,
    (person) => ({
      name: person.name,
      role: undefined,
      detail: '',
      marks: suspended(person),
      facts: [
        {
          label: message(`organization-client.${isIn(app) ? 'access' : 'could-access'}`),
          text: placesOf(person).join(', ') || message('organization.no-rights'),
        },
        last(message('organization.last-used'), person.lastUsedAt),
      ],
      action: undefined,
    }),
  );
}

const whole =
  <Row>(rows: readonly Row[]) =>
  async () => ({ rows, next: undefined });

const WAREHOUSES: Omit<Kind<WarehouseRow>, 'heading'> = {
  id: 'warehouses',
  empty: message('organization-client.no-access'),
  textOf: ({ name }) => name,
  orders: [byName],
};

const PEOPLE: Kind<PersonRow> = {
  id: 'people',
  heading: message('organization.connected-by'),
  empty: message('organization.no-one'),
  textOf: ({ name }) => name,
  orders: [byLastUse, byName],
};

const blockedBy = (at: Date, by: string | null): Message =>
  message('organization-client.blocked', { at: toMoment(at), by: by ?? '', isKnown: String(by !== null) });

/** Says when a client was blocked, or else approved or declined; undefined without a decision. */
function decisionOf({ state, blockedAt, blockedBy: by, decidedAt, decidedBy, sentence }: ReachingClient) {
  if (blockedAt !== null) return blockedBy(blockedAt, by);
  if (decidedAt === null) return undefined;
  const what = state === 'declined' ? state : 'approved';
  return message(`organization-client.${what}`, {
    at: toMoment(decidedAt),
    by: decidedBy ?? '',
    isKnown: String(decidedBy !== null),
    reason: sentence ?? '',
    hasReason: String(sentence !== null),
  });
}
