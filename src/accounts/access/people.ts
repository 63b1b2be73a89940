/** Users with the data that most requests need (account, access, connections), read by one statement. */
import type { Clock } from '../../base/clock.ts';
import { createCache } from '../../storage/cache.ts';
import type { ChangeFeed } from '../../storage/change-feed.ts';
import { createEndedIds, endedIdsFrom, endedIdsSql } from '../../storage/ended-ids.ts';
import type { Queries } from '../../storage/queries.ts';
import { ACCOUNT_COLUMNS, type Account, type AccountRow, accountFrom, isAccountId } from '../account.ts';
import { isOpen, type OrganizationPolicies, type OrganizationPolicy } from '../organizations/organization-policy.ts';
import { type ConnectionLimit, isLimited, LIMIT_COLUMN, type LimitJson, limitFrom } from './access-limit.ts';
import { type Organization, organizationsFrom, type ReachRow, selectReach } from './reach.ts';

export interface Person {
  readonly account: Account;
  readonly organizations: readonly Organization[];
  readonly policies: OrganizationPolicies;
  readonly connections: readonly PersonConnection[];
  /** Ids of this user's authorizations that were themselves revoked; undefined if there are too many to cache. */
  readonly ended: readonly string[] | undefined;
}

/** For the generation, see authorizations/connections.ts. `limit` is absent if the connection has no limit. */
export type PersonConnection = readonly [clientId: string, generation: number, limit?: ConnectionLimit];

export type People = ReturnType<typeof createPeople>;

/** One unit of the cache's size (3 kB) is for so many organizations and warehouses, including those in limits. */
const PLACES = 10;
/** This many ids of ended authorizations take as much memory as one organization or warehouse. */
const ENDED_IN_PLACE = 7;

const selectPerson = (id: string): string => `SELECT ${ACCOUNT_COLUMNS},
    (SELECT json_agg(r) FROM (${selectReach('account_id', 'a.id')}) r) AS reach,
    (SELECT json_agg(json_build_array(n.client_id, n.generation, ${LIMIT_COLUMN}))
      FROM connections n WHERE n.account_id = a.id) AS connections,
    ${endedIdsSql('SELECT e.id FROM ended_authorizations e WHERE e.account_id = a.id')} AS ended
  FROM accounts a WHERE a.id = ${id}`;

export function createPeople(parts: {
  readonly database: Queries;
  readonly changes: ChangeFeed;
  readonly clock: Clock;
  /** Maximum number of cached users; a user with ten or more organizations and warehouses counts several times. */
  readonly maxCached?: number | undefined;
}) {
  const { database, changes, clock, maxCached } = parts;
  const cache = createCache<Person | undefined>({
    changes,
    clock,
    topics: ['accounts', 'access', 'connections', 'authorizations'],
    within: { topic: 'organizations', namesIn: (person) => organizationIds(person) },
    ...(maxCached && { maxSize: maxCached }),
    sizeOf: (person) => Math.ceil(placesOf(person) / PLACES),
    asText: { pack, unpack },
  });

  const isEnded = createEndedIds({
    changes,
    clock,
    topic: 'authorizations',
    async ask(id) {
      const found = await database.query('SELECT 1 FROM ended_authorizations WHERE id = $1', [id]);
      return found.length > 0;
    },
  });

  async function read(id: string): Promise<Person | undefined> {
    const [row] = await database.query<PersonRow>(selectPerson('$1'), [id], 'person');
    return row && personFrom(row);
  }

  return {
    /** Returns the user, even if suspended. If `isUsable` returns false for a cached user, reads the user again. */
    async find(id: string, isUsable: (person: Person) => boolean = () => true): Promise<Person | undefined> {
      if (!isAccountId(id)) return undefined;
      const person = await cache.get(id, () => read(id), isUsable);
      if (person === undefined || isUsable(person)) return person;
      // Read again: the returned user may come from a read that began before this call.
      return cache.get(id, () => read(id), isUsable);
    },
    /** Reads in one query a row with `accountId` and the user with this id. @param fromJson converts times from text */
    async findWith<Row>(select: string, value: string, fromJson: (row: Row) => Row) {
      const keep = cache.beginRead();
      const [row] = await database.query<PersonRow & { readonly found: Row }>(
        `SELECT to_json(f) AS found, p.* FROM (${select}) f,
          LATERAL (${selectPerson('f."accountId"')}) p`,
        [value],
      );
      if (row) keep(row.id, personFrom(row));
      return row && fromJson(row.found);
    },
    /** True if this authorization of the user was itself revoked, even if the token store still has it. */
    hasEnded: ({ account, ended }: Person, id: string): Promise<boolean> => isEnded(account.id, ended, id),
    /** Call this after a user's data have changed, because the notification from the database arrives later. */
    forget: cache.invalidate,
  };
}

interface PersonRow extends AccountRow {
  readonly reach: readonly ReachRow[] | null;
  readonly connections: readonly [string, number, LimitJson][] | null;
  readonly ended: readonly string[];
}

const personFrom = ({ reach, connections, ended, ...account }: PersonRow): Person => ({
  account: accountFrom(account),
  organizations: organizationsFrom(reach ?? []),
  policies: policiesFrom(reach ?? []),
  ended: endedIdsFrom(ended),
  connections: (connections ?? []).map(([clientId, generation, limit]) =>
    isLimited(limitFrom(limit)) ? [clientId, generation, limitFrom(limit)] : [clientId, generation],
  ),
});

const NO_POLICIES: OrganizationPolicies = new Map();

function policiesFrom(rows: readonly ReachRow[]): OrganizationPolicies {
  const policies = rows
    .map(({ organizationId: id, asksFirst, allowsApiKeys }) => ({ id, policy: { asksFirst, allowsApiKeys } }))
    .filter(({ policy }) => !isOpen(policy));
  if (policies.length === 0) return NO_POLICIES;
  return new Map(policies.map(({ id, policy }) => [id, policy]));
}

/** A user as JSON in the cache, where times are text and the policies a list. */
type PersonJson = Pick<Person, 'organizations' | 'ended'> & {
  readonly account: Omit<Account, 'createdAt' | 'suspendedAt'> & {
    readonly createdAt: string;
    readonly suspendedAt?: string;
  };
  readonly policies: readonly (readonly [string, OrganizationPolicy])[];
  readonly connections: readonly (readonly [string, number, LimitJson?])[];
};

const pack = ({ policies, ...person }: Person): string => JSON.stringify({ ...person, policies: [...policies] });

function unpack(text: string): Person {
  const { account, organizations, policies, ended, connections }: PersonJson = JSON.parse(text);
  const { createdAt, suspendedAt, ...others } = account;
  return {
    account: {
      ...others,
      createdAt: new Date(createdAt),
      ...(suspendedAt !== undefined && { suspendedAt: new Date(suspendedAt) }),
    },
    organizations,
    policies: policies.length === 0 ? NO_POLICIES : new Map(policies),
    ended,
    connections: connections.map(([clientId, generation, limit]) =>
      limit ? [clientId, generation, limitFrom(limit)] : [clientId, generation],
    ),
  };
}

const organizationIds = (person: Person | undefined): string[] => person?.organizations.map(({ id }) => id) ?? [];

const placesOf = (person: Person | undefined): number =>
  person
    ? person.organizations.reduce((sum, { warehouses }) => sum + 1 + warehouses.length, 1) +
      person.connections.reduce((sum, [, , limit]) => sum + (limit?.places?.length ?? 0), 0) +
      (person.ended?.length ?? 0) / ENDED_IN_PLACE
    : 1;
