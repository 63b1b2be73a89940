/** The parts of an organization's page, which list the users, clients and API keys with access. */
import type { ParsedUrlQuery } from 'node:querystring';
import { type Organization, RIGHTS, type Right } from '../../accounts/access/reach.ts';
import type { OrganizationPolicy } from '../../accounts/organizations/organization-policy.ts';
import { isUnused } from '../../authorizations/connected-clients.ts';
import { MAX_COUNTED, MAX_EXAMINED, type Reach } from '../../authorizations/organization-reach.ts';
import type {
  Blockable,
  Reaching,
  ReachingClient,
  ReachingKey,
  ReachingMachine,
  ReachingPerson,
  Step,
} from '../../authorizations/reaching.ts';
import { type Message, message, type Text } from '../../base/message.ts';
import { byText, byTime, type ListForm, stepListOf } from '../lists.ts';
import { type Moment, momentOrNothing, toMoment } from '../words/moment.ts';
import { type Tile, tileOf } from '../words/tile.ts';

/** Maximum number of rows of each part, on the page that shows all parts. */
const MAX_ROWS_PER_PART = 10;
/** Maximum number of database reads for each part, if the page shows all parts. `MAX_STEPS` is for a single part. */
const MAX_STEPS_PER_PART = 3;
const MAX_STEPS = 60;
/** Maximum number of names in a list of users or warehouses. */
export const MAX_NAMES = 3;

export interface Looking {
  readonly accountId: string;
  readonly organization: Organization;
  /** If the user has chosen a warehouse, the page lists only what can access this warehouse. */
  readonly warehouse: Organization['warehouses'][number] | undefined;
  readonly inWords: (rights: readonly Right[]) => string;
  readonly url: string;
  readonly query: ParsedUrlQuery;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

export interface ReachRow {
  readonly id: string;
  readonly name: string;
  /** The URL of the client's page; absent for rows that are no client. */
  readonly url?: string;
  readonly tile?: Tile;
  /** An email address, the owner of a client, or the last characters of an API key; may be empty. */
  readonly detail: Text;
  readonly role: Message | undefined;
  readonly marks: readonly { readonly text: Message; readonly isWarning: boolean }[];
  readonly facts: readonly ReachFact[];
  /** The link that ends or restores the access of this row; undefined if the user may do neither. */
  readonly action: { readonly url: string; readonly label: Message; readonly isEnd: boolean } | undefined;
}

export interface ReachFact {
  readonly label: Message;
  /** Exactly one of `text` and `moment` is present. */
  readonly text?: Text;
  readonly moment?: Moment;
}

/** Returns all parts, or only the part that the query parameter `show` names. */
export async function reachParts(
  { asksFirst, allowsApiKeys }: OrganizationPolicy,
  reach: Reach,
  looking: Looking,
): Promise<ReachPart[]> {
  const { warehouse } = looking;
  const clients = async (isRequest: boolean, from?: string): Promise<Step<ReachingClient>> => {
    const { rows, next } = await reach.clients(from);
    return { rows: rows.filter(({ state }) => (state === 'waiting') === isRequest), next };
  };
  const row = (client: ReachingClient) => clientRow(client, looking);
  const keys = allowsApiKeys
    ? partOf(KEYS, reach.apiKeys, looking, keyRow)
    : partOf({ ...KEYS, empty: message('organization.api-keys-refused') }, none, looking, keyRow);
  const parts = [
    ...(asksFirst && !warehouse ? [partOf(REQUESTS, (from) => clients(true, from), looking, row)] : []),
    partOf(PEOPLE, reach.people, looking, personRow(await reach.owners(), looking)),
    partOf(warehouse ? { ...CLIENTS, filters: [BLOCKED] } : CLIENTS, (from) => clients(false, from), looking, row),
    partOf(MACHINES, reach.machines, looking, (machine) => machineRow(machine, looking)),
    keys,
  ];
  const chosen = parts.filter(({ id }) => id === looking.query.show);
  const shown: ReachPart[] = [];
  for (const { read } of chosen.length > 0 ? chosen : parts) shown.push(await read());
  return shown;
}

const none = async (): Promise<Step<ReachingKey>> => ({ rows: [], next: undefined });

export interface Kind<Row> extends Omit<ListForm<Row>, 'path' | 'kept' | 'idOf'> {
  readonly id: string;
  readonly heading: Message;
  readonly note?: Message | undefined;
  readonly empty: Message;
  /** True if the access was not used for 90 days, so that the page proposes to end it. */
  readonly isUnused?: (row: Row, now: number) => boolean;
}

export const partOf = <Row extends Reached>(
  { id, heading, note, empty, isUnused, filters = [], ...form }: Kind<Row>,
  step: (from?: string) => Promise<Step<Row>>,
  looking: Looking,
  rowOf: (row: Row) => Omit<ReachRow, 'id'>,
) => ({
  id,
  async read() {
    const { url, query, warehouse, now } = looking;
    const isAlone = query.show === id;
    const kept = { show: id, ...(warehouse && { warehouse: warehouse.id }) };
    const has = (row: Row): boolean => isUnused?.(row, now) ?? false;
    const unused = { name: 'unused', label: message('organization.unused-filter'), has };
    const offered = isUnused ? [unused, ...filters] : filters;
    const whole: ListForm<Row> = { ...form, path: url, kept, idOf, filters: offered };
    const steps = isAlone ? MAX_STEPS : MAX_STEPS_PER_PART;
    const { rows: found, isMore, list } = await stepListOf(step, isAlone ? query : {}, whole, steps);
    const rows = (isAlone ? found : found.slice(0, MAX_ROWS_PER_PART)).map((row) => {
      const { facts, marks, ...more } = rowOf(row);
      const all = has(row) ? [...marks, { text: message('organization.unused'), isWarning: true }] : marks;
      return { id: row.id, ...more, marks: all, facts: [...reached(row, looking), ...facts] } satisfies ReachRow;
    });
    const count = isAlone ? 0 : found.filter(has).length;
    return {
      id,
      heading,
      note,
      empty,
      total: list.total,
      /** True if there may be more rows than `total`. */
      isMore,
      rows,
      /** Take the column headings from the first row, because all rows have the same columns. */
      columns: rows[0]?.facts.map(({ label }) => label) ?? [],
      /** URL of the list's own page; undefined there, and if no row is missing. */
      allUrl: (isMore || rows.length < list.total) && !isAlone ? list.allUrl : undefined,
      /** How many rows were not used for 90 days, and a link to them; undefined if there are none. */
      unused: count > 0 ? { count, url: `${list.allUrl}&only=unused` } : undefined,
      list: isAlone ? list : undefined,
    };
  },
});

export type ReachPart = Awaited<ReturnType<ReturnType<typeof partOf>['read']>>;

/** `warehouses` is the number of warehouses that the user, client or API key can access, if the page shows it. */
export type Reached = Pick<Reaching, 'at' | 'id' | 'rights'> & {
  readonly warehouses?: number | null;
};

const idOf = ({ id }: { readonly id: string }): string => id;
export const byName = byText('name', message('organization.name'), ({ name }: { readonly name: string }) => name);
export const byLastUse = byTime(
  'used',
  message('organization.last-used'),
  ({ lastUsedAt }: { readonly lastUsedAt: Date | null }) => lastUsedAt,
);
const PEOPLE: Kind<ReachingPerson> = {
  id: 'people',
  heading: message('organization.people'),
  note: message('organization.people-note'),
  empty: message('organization.people-empty'),
  textOf: ({ name, email, role }) => `${name} ${email} ${role}`,
  orders: [
    byName,
    byTime('signed-in', message('organization.last-signed-in'), ({ lastSignedInAt }) => lastSignedInAt),
    byTime('since', message('organization.newest'), ({ since }) => since),
  ],
  filters: [
    {
      name: 'charge',
      label: message('organization.owners'),
      has: ({ role }) => /owner|admin/.test(role),
    },
    {
      name: 'suspended',
      label: message('organization.suspended'),
      has: ({ isSuspended }) => isSuspended,
    },
  ],
};

const REQUESTS: Kind<ReachingClient> = {
  id: 'requests',
  heading: message('organization.requests'),
  note: message('organization.requests-note'),
  empty: message('organization.requests-empty'),
  textOf: ({ name, ownerName, people }) => [name, ownerName, ...people].join(' '),
  orders: [byTime('requested', message('organization.latest'), ({ requestedAt }) => requestedAt), byName],
};

const BLOCKED = {
  name: 'out',
  label: message('organization.blocked'),
  has: ({ isBlocked, isBlockedThere, blockedIn }: ReachingClient) =>
    isBlocked || isBlockedThere || blockedIn.length > 0,
};

const CLIENTS: Kind<ReachingClient> = {
  id: 'clients',
  heading: message('organization.clients'),
  note: message('organization.clients-note'),
  empty: message('organization.clients-empty'),
  textOf: ({ name, ownerName, people }) => [name, ownerName, ...people].join(' '),
  orders: [byName, byLastUse],
  isUnused: ({ state, isBlockedThere, count, lastUsedAt, requestedAt }, now) =>
    // If more members have connected the client than `MAX_EXAMINED`, its last use is unknown.
    state === 'admitted' && !isBlockedThere && count <= MAX_EXAMINED && isUnused(lastUsedAt, requestedAt, now),
  filters: [
    BLOCKED,
    {
      name: 'declined',
      label: message('organization.declined'),
      has: ({ state }) => state === 'declined',
    },
  ],
};

const MACHINES: Kind<ReachingMachine> = {
  id: 'machines',
  heading: message('organization.machines'),
  note: message('organization.machines-note'),
  empty: message('organization.machines-empty'),
  textOf: ({ name, role }) => `${name} ${role}`,
  orders: [byName, byLastUse],
  isUnused: ({ lastUsedAt, since, isBlocked, isBlockedThere }, now) =>
    !isBlocked && !isBlockedThere && isUnused(lastUsedAt, since, now),
};

const KEYS: Kind<ReachingKey> = {
  id: 'api-keys',
  heading: message('organization.api-keys'),
  note: message('organization.api-keys-note'),
  empty: message('organization.api-keys-empty'),
  textOf: ({ name, person, lastFour }) => `${name} ${person} ${lastFour}`,
  orders: [byName, byLastUse, byText('person', message('organization.person'), ({ person }) => person)],
  isUnused: ({ lastUsedAt, createdAt }, now) => isUnused(lastUsedAt, createdAt, now),
};

function personRow(owners: readonly string[], looking: Looking) {
  const { accountId, organization, warehouse, url } = looking;
  return ({ id, name, email, role, ...person }: ReachingPerson) => {
    const isLast = owners.every((owner) => owner === id);
    const isProtected = role === 'owner' && (organization.role !== 'owner' || isLast);
    return {
      name,
      detail: email,
      role: message(`roles.${role}`),
      marks: [
        ...(id === accountId ? [{ text: message('organization.you'), isWarning: false }] : []),
        ...suspended(person),
      ],
      facts: [
        { label: message('organization.since'), moment: toMoment(person.since) },
        last(message('organization.last-signed-in'), person.lastSignedInAt),
      ],
      // If a warehouse is chosen, offer no action that affects the whole organization.
      action:
        isProtected || warehouse
          ? undefined
          : { url: `${url}/people/${id}/end`, label: message('organizations.end'), isEnd: true },
    };
  };
}

/** Returns the link that blocks or unblocks a client in the chosen warehouse, or in the whole organization. */
export function blockAction(
  { id, isBlocked, isBlockedThere }: Pick<ReachingClient, 'id' | 'isBlocked' | 'isBlockedThere'>,
  { url, warehouse }: { readonly url: string; readonly warehouse: { readonly id: string } | undefined },
  block = message('organizations.block'),
) {
  const isEverywhere = isBlocked && !isBlockedThere;
  const isEnd = !isBlocked && !isBlockedThere;
  const place = warehouse && !isEverywhere ? `${url}/warehouses/${warehouse.id}` : url;
  const label = isEnd ? block : message('organizations.unblock');
  return { url: `${place}/clients/${id}/${isEnd ? 'end' : 'let-in'}`, label, isEnd };
}

function blocks({ isBlocked, isBlockedThere, blockedIn }: Blockable, looking: Looking) {
  const { organization, warehouse } = looking;
  const places = [
    ...(isBlockedThere && warehouse ? [warehouse.name] : []),
    ...(isBlocked ? [organization.name] : []),
    ...(warehouse || isBlocked ? [] : blockedIn.map(({ name }) => name)),
  ];
  if (places.length === 0) return [];
  // If the client is blocked only in the chosen warehouse, the warning need not name the warehouse.
  if (isBlockedThere && !isBlocked) return [warning('blocked')];
  const names = places.slice(0, MAX_NAMES).join(', ');
  const others = Math.max(0, places.length - MAX_NAMES);
  return [{ text: message('organization.blocked-in', { names, others }), isWarning: true }];
}

export const warning = (what: 'blocked' | 'declined' | 'suspended') => ({
  text: message(`organization.${what}`),
  isWarning: true,
});

function clientRow(client: ReachingClient, looking: Looking) {
  const { id, name, state } = client;
  const isOpen = state === 'waiting' || state === 'declined';
  const url = `${looking.url}/clients/${id}`;
  const lastUse =
    client.people.length > 0
      ? last(message('organization.last-used'), client.lastUsedAt)
      : // Ended connections are not read, so *never* could be wrong if there is no current connection.
        { label: message('organization.last-used'), text: message('organization.unknown') };
  return {
    name,
    url,
    tile: tileOf({ id, name }),
    role: undefined,
    detail: message('organization.made-by', { maker: makerOf(client.ownerName) }),
    marks: [...suspended(client), ...blocks(client, looking), ...(state === 'declined' ? [warning('declined')] : [])],
    facts: [
      { label: message('organization.connected-by'), text: through(client) },
      state === 'waiting' ? last(message('organization.requested'), client.requestedAt) : lastUse,
    ],
    action:
      isOpen && !client.isBlockedThere
        ? { url, label: message('organization.decide'), isEnd: false }
        : blockAction(client, looking),
  };
}

const machineRow = ({ name, role, ...machine }: ReachingMachine, looking: Looking) => ({
  name,
  role: message(`roles.${role}`),
  detail: message('organization.made-by', { maker: makerOf(null) }),
  marks: [...suspended(machine), ...blocks(machine, looking)],
  facts: [last(message('organization.last-used'), machine.lastUsedAt)],
  action: blockAction(machine, looking),
});

const keyRow = ({ name, lastFour, person, createdAt, lastUsedAt }: ReachingKey) => ({
  name,
  role: undefined,
  marks: [],
  action: undefined,
  detail: `gate_key_…${lastFour}`,
  facts: [
    { label: message('organization.acts-as'), text: person },
    { label: message('organization.created'), moment: toMoment(createdAt) },
    last(message('organization.last-used'), lastUsedAt),
  ],
});

export const suspended = ({ isSuspended }: { readonly isSuspended: boolean }): ReachRow['marks'] =>
  isSuspended ? [warning('suspended')] : [];

export function last(label: Message, at: Date | null): ReachFact {
  const moment = momentOrNothing(at);
  return moment ? { label, moment } : { label, text: message('organization.never') };
}

export const rightsOf = (rights: readonly Right[], { inWords }: Looking): string =>
  inWords(RIGHTS.filter((right) => rights.includes(right)));

/** Describes the rights in the chosen warehouse, or else the number of accessible warehouses. */
function reached(row: Reached, looking: Looking): ReachFact[] {
  const { organization, warehouse } = looking;
  if (warehouse) {
    const text = rightsOf(row.rights, looking) || message('organization.no-rights');
    return [{ label: message('organization-client.rights'), text }];
  }
  if (row.warehouses === undefined) return [];
  const all = organization.warehouses.length;
  const count = row.warehouses ?? all;
  const which = count === all ? 'all' : 'some';
  const text = message('organization.warehouse-count', { which, count, all });
  return [{ label: message('organization.warehouses'), text }];
}

export const makerOf = (ownerName: string | null): Text => ownerName ?? message('organization.operator');

/** Returns a text such as `Ada, Grace, Oscar and 12 others`. */
export function through({ people, count }: Pick<ReachingClient, 'people' | 'count'>): Text {
  const names = people.slice(0, MAX_NAMES).join(', ');
  const others = Math.min(count, MAX_COUNTED) - MAX_NAMES;
  if (count > MAX_COUNTED) return message('organization.and-many', { names, others });
  if (count === 0) return message('organization.no-one');
  return others > 0 ? message('organization.and-others', { names, others }) : names;
}
