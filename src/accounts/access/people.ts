/** Each person as requests need them, read by one statement: the account, and what they may reach now. */
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
  /** By name. */
  readonly organizations: readonly Organization[];
  /** What the generation of a connection is, authorizations/connections.ts says. */
  readonly connections: readonly (readonly [clientId: string, generation: number])[];
}

export type People = ReturnType<typeof createPeople>;

interface PeopleParts {
  readonly database: Queries;
  readonly changes: ChangeFeed;
  readonly clock: Clock;
  /** Who reaches more than ten places counts as several. */
  readonly mostRemembered?: number | undefined;
}

/** They take 3 kB, with all else that is kept of a person. */
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
     * The person, suspended or not; undefined when there is none.
     *
     * @param isGood of who is remembered, or they are read again.
     */
    async find(
      id: string,
      isGood: (person: Person) => boolean = () => true,
    ): Promise<Person | undefined> {
      if (!isAccountId(id)) return undefined;
      const person = await memory.find(id, () => read(id), isGood);
      if (person === undefined || isGood(person)) return person;
      // It was under way already.
      return memory.find(id, () => read(id), isGood);
    },
    /** For whoever changed something of them, which the notification tells a moment later. */
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
