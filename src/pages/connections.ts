/** `/profile/connections`: the clients that act for a user, what they reach, and how to end it. */
import type { Context } from 'koa';
import type { Access } from '../accounts/access/access.ts';
import {
  type ComparedOrganization,
  compareAccess,
  countChanges,
} from '../accounts/access/access-difference.ts';
import type { Organization } from '../accounts/access/reach.ts';
import type { Bar } from '../accounts/organizations/bars.ts';
import type { ConnectedClient } from '../authorizations/connected-clients.ts';
import type { Connections } from '../authorizations/connections.ts';
import type { Disconnect } from '../authorizations/endings.ts';
import { byText, byTime, type ListFilter, type ListForm, type ListView, listOf } from './lists.ts';
import { originOf, seeOther } from './page.ts';
import type { PageKit } from './page-kit.ts';
import { get, post, type Route } from './routes.ts';
import { accountOf } from './signed-in.ts';
import { type Moment, momentOf, momentOrNothing } from './words/moment.ts';
import { type BarredThere, barsInWords, reachedInWords } from './words/reached.ts';

declare module './view-data.ts' {
  interface ViewData {
    readonly connections: {
      readonly notice: string | undefined;
      readonly connections: readonly ConnectionRow[];
      readonly list: ListView;
      /** What the user reaches now: `2 organizations, 5 warehouses`. */
      readonly reach: string;
      readonly disconnectAllUrl: string;
    };
    readonly connection: ConnectionRow & {
      /** The latest approval; undefined if it was the first one. */
      readonly approved: Moment | undefined;
      readonly organizations: readonly ReachedOrganization[];
    };
  }
}

interface ConnectionRow {
  readonly url: string;
  readonly name: string;
  /** The owner's name, or 'the operator of this service'. */
  readonly providedBy: string;
  readonly isSuspended: boolean;
  readonly connected: Moment;
  /** Undefined for a client that was never used. */
  readonly lastUsed: Moment | undefined;
  /**
   * What changed in its access since the approval: `1 added, 2 removed`; empty if nothing did,
   * undefined if the approved access is unknown.
   */
  readonly changes: string | undefined;
  /** The user's organizations that block it. */
  readonly bars: readonly BarredThere[];
  readonly disconnectUrl: string;
}

const PATH = '/profile/connections';
const ALL = `${PATH}/disconnect-all`;
const DISCONNECTED = 'Disconnected: every access it had is over, and it must ask you again.';
const ALL_DISCONNECTED = 'Everything is disconnected: whoever acted for you must ask you again.';

export function connectionsPage(parts: {
  readonly kit: PageKit;
  readonly access: Access;
  readonly connections: Connections;
  readonly disconnect: Disconnect;
}): Route[] {
  const { kit, access, connections, disconnect } = parts;

  /** Returns the user's connection that the path names; any other is Koa's 404. */
  async function ownConnection(ctx: Context): Promise<ConnectedClient | undefined> {
    const id = String(ctx.params.id);
    const all = await connections.listOf(accountOf(ctx).id);
    return all.find(({ clientId }) => clientId === id);
  }

  /** Returns what the user reaches, and which of it each client does not, because it is blocked. */
  async function reachOf(ctx: Context): Promise<Reach> {
    const all = await access.accessOf({ accountId: accountOf(ctx).id });
    const bars = await access.bars.within(all.map(({ id }) => id));
    return { all, barsOf: (clientId) => bars.get(clientId) ?? [] };
  }

  async function showAll(ctx: Context): Promise<void> {
    const [connected, reach] = await Promise.all([
      connections.listOf(accountOf(ctx).id),
      reachOf(ctx),
    ]);
    const changed = (client: ConnectedClient): boolean =>
      client.approvedAccess !== null &&
      Object.values(countChanges(compared(client, reach))).some((count) => count > 0);
    const { rows, list } = listOf(connected, ctx.query, {
      ...CONNECTIONS,
      filters: [...UNUSUAL, { name: 'changed', label: 'Reach changed', has: changed }],
    });
    await kit.render(ctx, 'connections', {
      notice: await kit.notices.take(ctx),
      list,
      connections: rows.map((client) => rowOf(client, compared(client, reach), reach)),
      reach: amountOf(reach.all),
      disconnectAllUrl: ALL,
    });
  }

  async function show(ctx: Context): Promise<void> {
    const client = await ownConnection(ctx);
    if (!client) return;
    const reach = await reachOf(ctx);
    const organizations = compared(client, reach);
    const { approvedAt, connectedAt } = client;
    await kit.render(ctx, 'connection', {
      ...rowOf(client, organizations, reach),
      approved: approvedAt > connectedAt ? momentOf(approvedAt) : undefined,
      organizations: organizations.map(reachedInWords),
    });
  }

  async function askToDisconnect(ctx: Context): Promise<void> {
    const client = await ownConnection(ctx);
    if (!client) return;
    await kit.render(ctx, 'confirm', {
      section: 'connections',
      question: 'Disconnect',
      subject: client.name,
      consequences: [
        'Every access it has to your account ends at once, on all of its devices and servers.',
        'It can ask you again, and then you decide anew.',
      ],
      action: ctx.path,
      button: 'Disconnect',
      cancel: PATH,
    });
  }

  async function disconnectOne(ctx: Context): Promise<void> {
    const client = await ownConnection(ctx);
    if (!client) return;
    const { clientId } = client;
    await disconnect({ accountId: accountOf(ctx).id, clientId }, originOf(ctx));
    await kit.notices.tell(ctx, PATH, DISCONNECTED);
  }

  async function askToDisconnectAll(ctx: Context): Promise<void> {
    const { length } = await connections.listOf(accountOf(ctx).id);
    if (length === 0) return seeOther(ctx, PATH);
    await kit.render(ctx, 'confirm', {
      section: 'connections',
      question: 'Disconnect',
      subject: length === 1 ? 'your one connection' : `all ${length} connections`,
      consequences: [
        'Every client that acts for you loses its access at once. Your API keys stay.',
        'Each can ask you again, and then you decide anew.',
      ],
      action: ctx.path,
      button: 'Disconnect all',
      cancel: PATH,
    });
  }

  async function disconnectAll(ctx: Context): Promise<void> {
    await disconnect({ accountId: accountOf(ctx).id }, originOf(ctx));
    await kit.notices.tell(ctx, PATH, ALL_DISCONNECTED);
  }

  return [
    get(PATH, kit.requireSignedIn, showAll),
    get(ALL, kit.requireSignedIn, askToDisconnectAll),
    post(ALL, ...kit.ownForm(), disconnectAll),
    get(`${PATH}/:id`, kit.requireSignedIn, show),
    get(`${PATH}/:id/disconnect`, kit.requireSignedIn, askToDisconnect),
    post(`${PATH}/:id/disconnect`, ...kit.ownForm(), disconnectOne),
  ];
}

const CONNECTIONS: ListForm<ConnectedClient> = {
  path: PATH,
  idOf: ({ clientId }) => clientId,
  textOf: ({ name, ownerName }) => `${name} ${ownerName ?? 'operator'}`,
  orders: [
    byText('name', 'Name', ({ name }) => name),
    byTime('newest', 'Newest', ({ connectedAt }) => connectedAt),
    byTime('used', 'Last used', ({ lastUsedAt }) => lastUsedAt),
  ],
};
const UNUSUAL: readonly ListFilter<ConnectedClient>[] = [
  { name: 'unused', label: 'Never used', has: ({ lastUsedAt }) => lastUsedAt === null },
  { name: 'suspended', label: 'Suspended', has: ({ isSuspended }) => isSuspended },
];

interface Reach {
  readonly all: readonly Organization[];
  barsOf(clientId: string): readonly Bar[];
}

function compared(client: ConnectedClient, { all, barsOf }: Reach): ComparedOrganization[] {
  const barred = barsOf(client.clientId).map(({ organizationId }) => organizationId);
  return compareAccess(
    client.approvedAccess ?? undefined,
    all.filter(({ id }) => !barred.includes(id)),
  );
}

function rowOf(
  client: ConnectedClient,
  compared: readonly ComparedOrganization[],
  { all, barsOf }: Reach,
): ConnectionRow {
  const url = `${PATH}/${client.clientId}`;
  const { added, removed, changed } = countChanges(compared);
  const changes = [
    added > 0 ? `${added} added` : '',
    removed > 0 ? `${removed} removed` : '',
    changed > 0 ? `${changed} changed` : '',
  ];
  return {
    url,
    name: client.name,
    providedBy: client.ownerName ?? 'the operator of this service',
    isSuspended: client.isSuspended,
    connected: momentOf(client.connectedAt),
    lastUsed: momentOrNothing(client.lastUsedAt),
    changes: client.approvedAccess ? changes.filter(Boolean).join(', ') : undefined,
    bars: barsInWords(barsOf(client.clientId), all),
    disconnectUrl: `${url}/disconnect`,
  };
}

function amountOf(organizations: readonly Organization[]): string {
  const warehouses = organizations.flatMap((organization) => organization.warehouses).length;
  return `${counted(organizations.length, 'organization')}, ${counted(warehouses, 'warehouse')}`;
}

const counted = (count: number, noun: string): string =>
  `${count} ${count === 1 ? noun : `${noun}s`}`;
