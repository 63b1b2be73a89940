/** `/profile/connections`: shows, limits and ends the access of clients that act for the user. */
import type { Context, Next } from 'koa';
import type { Access } from '../accounts/access/access.ts';
import { type ConnectionLimit, isLimited, limitDetails } from '../accounts/access/access-limit.ts';
import type { ClientExclusion } from '../accounts/access/client-blocks.ts';
import type { Organization } from '../accounts/access/reach.ts';
import type { Activity } from '../accounts/activity/activity.ts';
import type { ClientStandings } from '../authorizations/client-standing.ts';
import { type ConnectedClient, isUnused } from '../authorizations/connected-clients.ts';
import type { Connections } from '../authorizations/connections.ts';
import type { Disconnect } from '../authorizations/endings.ts';
import type { Clock } from '../base/clock.ts';
import { message, type Text } from '../base/message.ts';
import { requestState } from '../base/request-state.ts';
import { findForm } from '../provider/form.ts';
import { endingRoutes } from './ending.ts';
import { formRoutes, type Said } from './form-step.ts';
import {
  checkLimit,
  describeLimit,
  LIMITED,
  type LimitFields,
  limitFields,
  NOT_LIMITED,
  organizationsOutside,
  placesIn,
  type TypedLimit,
  typedLimit,
} from './forms/limit-form.ts';
import { type ListFilter, type ListForm, type ListView, listOf, urlWith, usualOrders } from './lists.ts';
import { originInSession, requestOrigin } from './page.ts';
import type { PageKit } from './page-kit.ts';
import { get, type Route } from './routes.ts';
import { accountOf } from './signed-in.ts';
import { type DescribedStanding, describeStanding } from './words/client-standing.ts';
import { type Moment, momentOrNothing, toMoment } from './words/moment.ts';
import { describeExclusions, describeReached, type ReachedOrganization } from './words/reached.ts';
import { tileOf } from './words/tile.ts';

declare module './view-data.ts' {
  interface ViewData {
    readonly connections: {
      readonly notice: Text | undefined;
      readonly connections: readonly ConnectionRow[];
      readonly list: ListView;
      /** How many organizations at least one of the clients can access now. */
      readonly organizations: number;
      readonly warehouses: number;
      readonly disconnectAllUrl: string;
      /** How many apps were not used for 90 days, and the list of them; undefined if there are none. */
      readonly unused: { readonly count: number; readonly url: string } | undefined;
    };
    readonly connection: ConnectionView;
  }
}

interface ConnectionView extends ConnectionRow, Said {
  /** The time of the latest approval, if the user has approved the client more than once; otherwise undefined. */
  readonly approved: Moment | undefined;
  /** Undefined if the client still belongs to its first owner. */
  readonly ownedSince: Moment | undefined;
  readonly organizations: readonly ReachedOrganization[];
  /** The user's organizations to which the limit gives no access. */
  readonly outside: readonly { readonly id: string; readonly name: string }[];
  /** How many of the chosen organizations and warehouses the user can no longer access. */
  readonly gone: number;
  readonly form: LimitFields;
  readonly limitUrl: string;
  /** Undefined if the client has just been deleted. */
  readonly standing: DescribedStanding | undefined;
}

type ConnectionRow = ReturnType<typeof rowOf>;

const PATH = '/profile/connections';
/** A user who disconnects more apps than this at once must type the number of apps to confirm. */
const MAX_UNTYPED = 10;
/** The form field with the id of the organization whose button *Add* was pressed. */
const ADDED_FIELD = 'add_place';

const ownConnections = requestState<ConnectedClient>('requireConnection');

export function connectionsPage(parts: {
  readonly kit: PageKit;
  readonly clock: Clock;
  readonly access: Access;
  readonly clientStandings: Pick<ClientStandings, 'find'>;
  readonly connections: Connections;
  readonly activity: Pick<Activity, 'record'>;
  readonly disconnect: Disconnect;
}): Route[] {
  const { kit, clock, access, clientStandings, connections, activity, disconnect } = parts;

  async function reachOf(ctx: Context, clients: readonly ConnectedClient[]): Promise<Reach> {
    const accountId = accountOf(ctx).id;
    const all = await access.accessOf({ accountId });
    const [exclusions, reached] = await Promise.all([
      access.clientBlocks.exclusions(
        all.map(({ id }) => id),
        clients.map(({ clientId }) => clientId),
      ),
      access.accessThroughAll(accountId, clients),
    ]);
    return { all, exclusions, reached };
  }

  async function showAll(ctx: Context): Promise<void> {
    const connected = await connections.listOf(accountOf(ctx).id);
    const reach = await reachOf(ctx, connected);
    const { rows, list } = listOf(connected, ctx.query, {
      ...CONNECTIONS,
      filters: [unusedFilter(clock()), ...UNUSUAL],
    });
    const kept = keptOf(ctx);
    // The list of unused apps does not link to itself.
    const unused = kept.only ? 0 : connected.filter(unusedFilter(clock()).has).length;
    await kit.render(ctx, 'connections', {
      notice: await kit.notices.take(ctx),
      list,
      connections: rows.map((client) => rowOf(client, reach, kept)),
      ...countReached(connected, reach),
      disconnectAllUrl: `${PATH}/disconnect-all`,
      unused: unused > 0 ? { count: unused, url: urlWith(PATH, UNUSED) } : undefined,
    });
  }

  /** Stores the connection named in the path in `ownConnections`. If the user has no such connection, redirects. */
  async function requireConnection(ctx: Context, next: Next): Promise<void> {
    const all = await connections.listOf(accountOf(ctx).id);
    const client = all.find(({ clientId }) => clientId === ctx.params.id);
    ownConnections.set(ctx, client);
    await (client ? next() : kit.notices.redirect(ctx, PATH, message('connections.one-already')));
  }

  const limiting = formRoutes<{ readonly limit?: TypedLimit | undefined }>(kit, {
    path: `${PATH}/:id`,
    admit: [requireConnection],
    isForEverybody: false,
    async read(form, ctx) {
      const all = await access.accessOf({ accountId: accountOf(ctx).id });
      const added = form.get(ADDED_FIELD);
      const { limit } = ownConnections.get(ctx);
      return { limit: added === null ? typedLimit(form, all, clock(), limit) : withPlace(limit, added, all) };
    },
    stored: () => ({}),
    async draw(ctx, typed, said) {
      const client = ownConnections.get(ctx);
      const [reach, standing] = await Promise.all([
        reachOf(ctx, [client]),
        clientStandings.find(client.clientId, accountOf(ctx).id),
      ]);
      const organizations = reach.reached.get(client.clientId) ?? [];
      const { approvedAt, connectedAt, limit } = client;
      const places = new Set(placesIn(reach.all));
      await kit.render(ctx, 'connection', {
        ...rowOf(client, reach),
        approved: approvedAt > connectedAt ? toMoment(approvedAt) : undefined,
        ownedSince: momentOrNothing(client.ownedSince),
        organizations: organizations.map((one) => describeReached(one, kit.rightsInWords(ctx))),
        ...said,
        outside: organizationsOutside(reach.all, limit).map(({ id, name }) => ({ id, name })),
        gone: limit.places?.filter((id) => !places.has(id)).length ?? 0,
        form: limitFields(reach.all, typed.limit ?? limit, { now: clock(), hasEnd: true, stored: limit }),
        limitUrl: ctx.path,
        standing: standing && describeStanding(standing, clock()),
      });
    },
    check: checkLimit((ctx) => ownConnections.get(ctx).limit),
    async save(ctx, { limit }) {
      if (limit === undefined) return { url: ctx.path };
      const accountId = accountOf(ctx).id;
      const { clientId, name, limit: earlier } = ownConnections.get(ctx);
      const details = { changed: `limit of ${name}`, client_id: clientId, ...limitDetails(limit) };
      const origin = originInSession(ctx);
      const isChanged = await connections.limit({ accountId, clientId, limit: earlier }, limit, (tx) =>
        activity.record({ action: 'account_changed', actor: 'person', accountId, details, origin }, tx),
      );
      return { url: ctx.path, said: isChanged ? LIMITED : NOT_LIMITED };
    },
  });

  const disconnecting = (name: 'one' | 'all'): Route[] =>
    endingRoutes<readonly ConnectedClient[]>(kit, {
      path: name === 'one' ? `${PATH}/:id/disconnect` : `${PATH}/disconnect-all`,
      isUrgent: true,
      async find(ctx) {
        const all = await connections.listOf(accountOf(ctx).id);
        const clients = name === 'all' ? all : all.filter(({ clientId }) => clientId === ctx.params.id);
        return clients.length > 0 ? clients : undefined;
      },
      ask: (ctx, clients) => ({
        section: 'connections',
        heading: message(`connections.disconnect-${name}-heading`, {
          count: clients.length,
          app: clients[0]?.name ?? '',
        }),
        consequences: [
          message(`connections.disconnect-${name}-effect`, { count: clients.length }),
          message(name === 'one' ? 'connections.can-ask-again' : 'connections.all-can-ask-again'),
        ],
        fields: Object.entries(keptOf(ctx)).map(([field, value]) => ({ name: field, value })),
        button: message(name === 'all' ? 'connections.disconnect-all' : 'connections.disconnect'),
        toType: clients.length > MAX_UNTYPED ? String(clients.length) : undefined,
      }),
      async end(ctx, clients) {
        const { id: accountId } = accountOf(ctx);
        const whose = name === 'all' ? { accountId } : { accountId, clientId: `${ctx.params.id}` };
        await disconnect(whose, requestOrigin(ctx));
        return { said: message(`connections.${name}-disconnected`, { count: clients.length }) };
      },
      already: message(name === 'all' ? 'connections.all-disconnected' : `connections.${name}-already`),
      back: (ctx) => urlWith(PATH, keptOf(ctx)),
    });

  return [get(PATH, kit.requireSignedIn, showAll), ...disconnecting('all'), ...limiting, ...disconnecting('one')];
}

/** Allows access to a whole organization. Returns undefined if the user has no access to it, or there is no limit. */
function withPlace(limit: ConnectionLimit, id: string, all: readonly Organization[]): ConnectionLimit | undefined {
  const added = all.find((organization) => organization.id === id);
  if (!added || limit.places === null) return undefined;
  const within = placesIn([added]);
  return { ...limit, places: [...limit.places.filter((place) => !within.includes(place)), id] };
}

const CONNECTIONS: ListForm<ConnectedClient> = {
  path: PATH,
  idOf: ({ clientId }) => clientId,
  textOf: ({ name, ownerName }) => `${name} ${ownerName ?? 'operator'}`,
  orders: usualOrders(({ connectedAt }) => connectedAt),
};
/** Query parameter that lists only unused apps. Users return to the same list after they disconnect an app. */
const UNUSED = { only: 'unused' };
const keptOf = (ctx: Context): Partial<typeof UNUSED> =>
  (findForm(ctx)?.get('only') ?? ctx.query.only) === UNUSED.only ? UNUSED : {};
const unusedFilter = (now: number): ListFilter<ConnectedClient> => ({
  name: UNUSED.only,
  label: message('lists.unused'),
  // Do not list an app that was approved recently, even if it has not been used since.
  has: ({ lastUsedAt, approvedAt }) => isUnused(lastUsedAt, approvedAt, now) && isUnused(null, approvedAt, now),
});
const UNUSUAL: readonly ListFilter<ConnectedClient>[] = [
  { name: 'suspended', label: message('lists.suspended'), has: ({ isSuspended }) => isSuspended },
];

interface Reach {
  readonly all: readonly Organization[];
  /** Keyed by client id. */
  readonly exclusions: ReadonlyMap<string, readonly ClientExclusion[]>;
  /** Keyed by client id. */
  readonly reached: ReadonlyMap<string, readonly Organization[]>;
}

/** Counts each organization and warehouse only once. A suspended client can access none. */
function countReached(clients: readonly ConnectedClient[], { reached }: Reach) {
  const active = clients.filter(({ isSuspended }) => !isSuspended);
  const all = active.flatMap(({ clientId }) => reached.get(clientId) ?? []);
  return {
    organizations: new Set(all.map(({ id }) => id)).size,
    warehouses: new Set(all.flatMap(({ warehouses }) => warehouses.map(({ id }) => id))).size,
  };
}

function rowOf(client: ConnectedClient, { all, exclusions }: Reach, kept = {}) {
  const url = `${PATH}/${client.clientId}`;
  return {
    url,
    name: client.name,
    tile: tileOf({ id: client.clientId, name: client.name }),
    /** Empty if the operator provides the client. */
    owner: client.ownerName ?? '',
    isSuspended: client.isSuspended,
    connected: toMoment(client.connectedAt),
    lastUsed: momentOrNothing(client.lastUsedAt),
    /** Describes which of the user's organizations block the client, or require an approval that is missing. */
    bars: describeExclusions(exclusions.get(client.clientId) ?? [], all),
    disconnectUrl: urlWith(`${url}/disconnect`, kept),
    limit: isLimited(client.limit) ? describeLimit(client.limit, all) : undefined,
  };
}
