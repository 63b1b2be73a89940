/** Users as requests need them, read by one statement: the account and its present access. */
import type { Clock } from '../../base/clock.ts';
import type { ChangeFeed } from '../../storage/change-feed.ts';
import { createMemory } from '../../storage/memory.ts';
import type { Queries } from '../../storage/queries.ts';
import {
  ACCOUNT_COLUMNS,
  type Account,
  type AccountRow,
  accountFrom,
  isAccountId,
} from '../account.ts';
import { type Organization, organizationsFrom, type ReachRow, selectReach } from './reach.ts';

export interface Person {
  readonly account: Account;
  /** Sorted by name. */
  readonly organizations: readonly Organization[];
  /** The generation is explained in authorizations/connections.ts. */
  readonly connections: readonly (readonly [clientId: string, generation: number])[];
}

export type People = ReturnType<typeof createPeople>;

interface PeopleParts {
  readonly database: Queries;
  readonly changes: ChangeFeed;
  readonly clock: Clock;
  /** Maximum number of cached users; one with access to more than ten places takes more room. */
  readonly mostRemembered?: number | undefined;
}

/** A user with this many places takes 3 kB in the cache. */
const PLACES = 10;

const SELECT_PERSON = `SELECT ${ACCOUNT_COLUMNS},
    (SELECT json_agg(r) FROM (${selectReach('account_id', 'a.id')}) r) AS reach,
    (SELECT json_agg(json_build_array(n.client_id, n.generation))
      FROM connections n WHERE n.account_id = a.id) AS connections
  FROM accounts a WHERE a.id = $1`;

export function createPeople(parts: PeopleParts) {
  const { database, changes, clock, mostRemembered: most } = parts;
  const memory = createMemory<Person | undefined>({
    changes,
    clock,
    topics: ['accounts', 'access', 'connections'],
    within: { topic: 'organizations', namesIn: (person) => organizationIds(person) },
    ...(most && { most }),
    sizeOf: (person) => Math.ceil(placesOf(person) / PLACES),
  });

  async function read(id: string): Promise<Person | undefined> {
    const [row] = await database.query<PersonRow>(SELECT_PERSON, [id], 'person');
    return row && personFrom(row);
  }

  return {
    /**
     * Returns the user, suspended or not; undefined if there is none.
     *
     * @param isUsable if it returns false for the cached user, the user is read again.
     */
    async find(
      id: string,
      isUsable: (person: Person) => boolean = () => true,
    ): Promise<Person | undefined> {
      if (!isAccountId(id)) return undefined;
      const person = await memory.find(id, () => read(id), isUsable);
      if (person === undefined || isUsable(person)) return person;
      // The load was shared and had begun before: load the user again.
      return memory.find(id, () => read(id), isUsable);
    },
    /** Call it after a change of the user: the database's notification comes a moment later. */
    forget: memory.forget,
  };
}

interface PersonRow extends AccountRow {
  readonly reach: readonly ReachRow[] | null;
  readonly connections: Person['connections'] | null;
}

const personFrom = (row: PersonRow): Person => ({
  account: accountFrom(row),
  organizations: organizationsFrom(row.reach ?? []),
  connections: row.connections ?? [],
});

const organizationIds = (person: Person | undefined): string[] =>
  person?.organizations.map(({ id }) => id) ?? [];

const placesOf = (person: Person | undefined): number =>
  person?.organizations.reduce((sum, { warehouses }) => sum + 1 + warehouses.length, 1) ?? 1;
