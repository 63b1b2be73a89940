/** Lists the people, clients and API keys that reach an organization, for its page. */
import type { Organization } from '../../accounts/access/reach.ts';
import type {
  OrganizationReach,
  ReachingClient,
  ReachingKey,
  ReachingMachine,
  ReachingPerson,
} from '../../authorizations/organization-reach.ts';
import { byText, byTime, type ListForm, listOf } from '../lists.ts';
import { momentOrNothing, toMoment } from '../words/moment.ts';
import type { ReachFact, ReachPart, ReachRow } from './view.ts';

/** Maximum number of rows per part on the page with all parts. */
const MAX_ROWS_PER_PART = 10;
/** Maximum number of listed users through whom a client has access. */
const MAX_NAMES = 3;

/** The user who views the page, and the request. */
export interface Looking {
  readonly accountId: string;
  readonly organization: Organization;
  readonly url: string;
  readonly query: Parameters<typeof listOf>[1];
}

/** Returns all parts, or only the part that the parameter `show` names. */
export function reachParts(reach: OrganizationReach, looking: Looking): ReachPart[] {
  const { asksFirst, allowsApiKeys } = reach.policy;
  const isWaiting = ({ state }: ReachingClient): boolean => state === 'waiting';
  const requests = reach.clients.filter(isWaiting);
  const clients = reach.clients.filter((client) => !isWaiting(client));
  const row = (client: ReachingClient) => clientRow(client, asksFirst, looking);
  const keys = allowsApiKeys ? KEYS : { ...KEYS, empty: 'API keys are not allowed here.' };
  const all = [
    ...(asksFirst ? [partOf(REQUESTS, requests, looking, row)] : []),
    partOf(PEOPLE, reach.people, looking, personRow(reach, looking)),
    partOf(CLIENTS, clients, looking, row),
    partOf(MACHINES, reach.machines, looking, (machine) => machineRow(machine, reach)),
    partOf(keys, reach.apiKeys, looking, keyRow),
  ];
  const shown = all.filter(({ id }) => id === looking.query.show);
  return shown.length > 0 ? shown : all;
}

/** The texts of a part, and how its rows are searched, filtered and sorted. */
interface Kind<Row> extends Omit<ListForm<Row>, 'path' | 'kept' | 'idOf'> {
  readonly id: string;
  readonly heading: string;
  readonly note: string;
  readonly empty: string;
}

function partOf<Row extends { readonly id: string }>(
  { id, heading, note, empty, ...form }: Kind<Row>,
  rows: readonly Row[],
  { url, query }: Looking,
  rowOf: (row: Row) => ReachRow,
): ReachPart {
  const isAlone = query.show === id;
  const kept = { show: id };
  const whole: ListForm<Row> = { ...form, path: url, kept, idOf };
  const found = listOf(rows, isAlone ? query : {}, whole);
  const shown = isAlone ? found.rows : found.rows.slice(0, MAX_ROWS_PER_PART);
  return {
    id,
    heading,
    note,
    empty,
    total: rows.length,
    rows: shown.map(rowOf),
    allUrl: shown.length < rows.length && !isAlone ? found.list.allUrl : undefined,
    list: isAlone ? found.list : undefined,
  };
}

const idOf = ({ id }: { readonly id: string }): string => id;
const byName = byText('name', 'Name', ({ name }: { readonly name: string }) => name);
const byLastUse = byTime(
  'used',
  'Last used',
  ({ lastUsedAt }: { readonly lastUsedAt: Date | null }) => lastUsedAt,
);
const NEVER_USED = {
  name: 'unused',
  label: 'Never used',
  has: ({ lastUsedAt }: { readonly lastUsedAt: Date | null }) => lastUsedAt === null,
};

const PEOPLE: Kind<ReachingPerson> = {
  id: 'people',
  heading: 'People',
  note: 'If you end a membership, the person, their clients and their API keys reach nothing here.',
  empty: 'No person matches.',
  textOf: ({ name, email, role }) => `${name} ${email} ${role}`,
  orders: [
    byName,
    byTime('signed-in', 'Last signed in', ({ lastSignedInAt }) => lastSignedInAt),
    byTime('since', 'Newest members', ({ since }) => since),
  ],
  filters: [
    { name: 'charge', label: 'Owners and admins', has: ({ role }) => /owner|admin/.test(role) },
    { name: 'suspended', label: 'Suspended', has: ({ isSuspended }) => isSuspended },
  ],
};

const REQUESTS: Kind<ReachingClient> = {
  id: 'requests',
  heading: 'Requests',
  note: 'Members have connected these apps. They reach nothing here until you approve them.',
  empty: 'No app is waiting.',
  textOf: ({ name, ownerName, people }) => [name, ownerName, ...people].join(' '),
  orders: [byTime('requested', 'Latest', ({ requestedAt }) => requestedAt), byName],
  filters: [],
};

const CLIENTS: Kind<ReachingClient> = {
  id: 'clients',
  heading: 'Connected clients',
  note: 'A client reaches what the people who approved it reach. A client that you block reaches nothing here, whoever approves it later, until you unblock it.',
  empty: 'No one here has connected a client.',
  textOf: ({ name, ownerName, people }) => [name, ownerName, ...people].join(' '),
  orders: [byName, byLastUse],
  filters: [
    NEVER_USED,
    { name: 'out', label: 'Blocked', has: ({ state }) => state === 'blocked' },
    { name: 'declined', label: 'Declined', has: ({ state }) => state === 'declined' },
  ],
};

const MACHINES: Kind<ReachingMachine> = {
  id: 'machines',
  heading: 'Machine clients',
  note: 'Machine clients act for themselves. Only the operator of this service can end their access.',
  empty: 'None.',
  textOf: ({ name, role }) => `${name} ${role}`,
  orders: [byName, byLastUse],
  filters: [NEVER_USED],
};

const KEYS: Kind<ReachingKey> = {
  id: 'api-keys',
  heading: 'API keys',
  note: 'Each key acts as the person who created it, and loses this access with their membership.',
  empty: 'No one here has an API key.',
  textOf: ({ name, person, lastFour }) => `${name} ${person} ${lastFour}`,
  orders: [byName, byLastUse, byText('person', 'Person', ({ person }) => person)],
  filters: [NEVER_USED],
};

function personRow({ people, warehouses }: OrganizationReach, looking: Looking) {
  const { accountId, organization, url } = looking;
  const owners = people.filter(({ role, isSuspended }) => role === 'owner' && !isSuspended);
  return ({ id, name, email, role, ...person }: ReachingPerson): ReachRow => {
    const isLast = owners.every((owner) => owner.id === id);
    const isProtected = role === 'owner' && (organization.role !== 'owner' || isLast);
    return {
      name,
      detail: email,
      role,
      marks: [
        ...(id === accountId ? [{ text: 'you', isWarning: false }] : []),
        ...suspended(person),
      ],
      facts: [
        reached(person.warehouses, warehouses),
        { label: 'Member since', moment: toMoment(person.since) },
        last('Last signed in', person.lastSignedInAt),
      ],
      action: isProtected
        ? undefined
        : { url: `${url}/people/${id}/end`, label: 'End membership', isEnd: true },
    };
  };
}

function clientRow(
  { id, name, ...client }: ReachingClient,
  asksFirst: boolean,
  { url }: Looking,
): ReachRow {
  const { state } = client;
  const isOut = state === 'blocked';
  const isOpen = state === 'waiting' || state === 'declined';
  const [act, label] = isOpen
    ? ['decide', 'Decide']
    : isOut
      ? ['let-in', 'Unblock']
      : ['end', 'Block'];
  return {
    name,
    role: undefined,
    detail: `Provided by ${client.ownerName ?? 'the operator of this service'}`,
    marks: [
      ...suspended(client),
      ...(isOut ? [{ text: 'blocked', isWarning: true }] : []),
      ...(state === 'declined' ? [{ text: 'declined', isWarning: true }] : []),
    ],
    facts: [
      { label: isOpen ? 'Connected by' : 'Through', text: through(client.people) },
      ...(state === 'waiting' ? [last('Requested', client.requestedAt)] : []),
      last('Last used', client.lastUsedAt),
      ...(asksFirst ? decided(client) : []),
      ...(client.blockedAt === null
        ? []
        : [
            { label: 'Blocked since', moment: toMoment(client.blockedAt) },
            { label: 'By', text: client.blockedBy ?? 'somebody who is gone' },
            ...(client.followsBar
              ? [
                  {
                    label: 'Why',
                    text: 'Another client of its owner with the same redirect host is blocked',
                  },
                ]
              : []),
          ]),
    ],
    action: {
      url: `${url}/clients/${id}/${act}`,
      label,
      isEnd: act === 'end',
    },
  };
}

/** Returns the approval or refusal of a client; nothing if the client is undecided or blocked. */
function decided({ state, decidedAt, decidedBy, sentence }: Omit<ReachingClient, 'id' | 'name'>) {
  if (decidedAt === null || state === 'blocked') return [];
  return [
    last(state === 'declined' ? 'Declined' : 'Approved', decidedAt),
    ...(decidedBy === null ? [] : [{ label: 'By', text: decidedBy }]),
    ...(sentence === null ? [] : [{ label: 'Reason', text: sentence }]),
  ];
}

const machineRow = (
  { name, role, ...machine }: ReachingMachine,
  { warehouses }: OrganizationReach,
): ReachRow => ({
  name,
  role,
  detail: 'Provided by the operator of this service',
  marks: suspended(machine),
  facts: [reached(machine.warehouses, warehouses), last('Last used', machine.lastUsedAt)],
  action: undefined,
});

const keyRow = ({ name, lastFour, person, createdAt, lastUsedAt }: ReachingKey): ReachRow => ({
  name,
  role: undefined,
  marks: [],
  action: undefined,
  detail: `gate_key_…${lastFour}`,
  facts: [
    { label: 'Acts as', text: person },
    { label: 'Created', moment: toMoment(createdAt) },
    last('Last used', lastUsedAt),
  ],
});

const suspended = ({ isSuspended }: { readonly isSuspended: boolean }): ReachRow['marks'] =>
  isSuspended ? [{ text: 'suspended', isWarning: true }] : [];

function last(label: string, at: Date | null): ReachFact {
  const moment = momentOrNothing(at);
  return moment ? { label, moment } : { label, text: 'Never' };
}

const reached = (count: number, all: number): ReachFact => ({
  label: 'Warehouses',
  text:
    count === all
      ? all === 0
        ? 'None'
        : `All ${all}`
      : `${count === 0 ? 'None' : count} of ${all}`,
});

/** Returns `Ada, Grace, Oscar and 12 others`. */
export function through(people: readonly string[]): string {
  if (people.length === 0) return 'Nobody any more';
  const others = people.length - MAX_NAMES;
  if (others <= 0) return people.join(', ');
  return `${people.slice(0, MAX_NAMES).join(', ')} and ${others} ${others === 1 ? 'other' : 'others'}`;
}
