/** Who must sign in with more than a password, because of power over others, and since when. */
import type { Clock } from '../base/clock.ts';
import type { Queries } from '../storage/queries.ts';
import { canBeStrong, type UpstreamStrength } from './sign-in-strength.ts';
import { THROW_AWAY } from './throw-away-accounts.ts';

/** The sign-in methods that are strong under the present settings. */
interface StrongWays {
  readonly passkeys: boolean;
  /** The issuers of providers with strong sign-ins. */
  readonly issuers: readonly string[];
}

export const strongWaysOf = (signIn: {
  readonly passkeys: boolean;
  readonly providers: readonly UpstreamStrength[];
}): StrongWays => ({
  passkeys: signIn.passkeys,
  issuers: signIn.providers.filter(canBeStrong).map(({ issuer }) => issuer),
});

type RequiredSignIn = Parameters<typeof strongWaysOf>[0] & {
  readonly require: 'off' | 'passkey-or-upstream';
  readonly requireGraceSeconds: number;
};

export interface Demand {
  /** From then on the user can do nothing with a password alone. */
  readonly until: Date;
  readonly isOver: boolean;
  /** The user has a passkey or a link with a provider, one of the strong methods. */
  readonly hasWay: boolean;
}

export type StrongerSignIns = ReturnType<typeof createStrongerSignIns>;

export function createStrongerSignIns({
  database,
  clock,
  signIn,
}: {
  readonly database: Queries;
  readonly clock: Clock;
  readonly signIn: RequiredSignIn;
}) {
  const ways = strongWaysOf(signIn);
  return {
    /**
     * Returns what is demanded of a user who signed in with a password; undefined if nothing is.
     * The grace period begins at the first call for the user, and its beginning is stored.
     */
    demandOn: (accountId: string): Promise<Demand | undefined> =>
      demand(accountId, database, startGrace),
    /** Like `demandOn`, for a request that does not show it to the user: no grace period begins. */
    wouldBeDemanded: (
      accountId: string,
      queries: Queries = database,
    ): Promise<Demand | undefined> => demand(accountId, queries, async () => new Date(clock())),
  };

  async function demand(
    accountId: string,
    queries: Queries,
    startOfGrace: (accountId: string) => Promise<Date>,
  ): Promise<Demand | undefined> {
    if (signIn.require === 'off') return undefined;
    const [row] = await queries.query<{ has_way: boolean; began_at: Date | null }>(
      `SELECT ${hasWay('$2', '$3')} AS has_way,
          (SELECT began_at FROM sign_in_grace WHERE account_id = a.id) AS began_at
        FROM accounts a WHERE a.id = $1 AND ${HAS_POWER}`,
      [accountId, ways.passkeys, ways.issuers],
    );
    if (!row) return undefined;
    const beganAt = row.began_at ?? (await startOfGrace(accountId));
    const until = new Date(beganAt.getTime() + signIn.requireGraceSeconds * 1000);
    return { until, isOver: until.getTime() <= clock(), hasWay: row.has_way };
  }

  async function startGrace(accountId: string): Promise<Date> {
    const now = new Date(clock());
    // Parallel calls all return what the first one wrote.
    const [row] = await database.query<{ began_at: Date }>(
      `INSERT INTO sign_in_grace (account_id, began_at) VALUES ($1, $2)
        ON CONFLICT (account_id) DO UPDATE SET began_at = sign_in_grace.began_at
        RETURNING began_at`,
      [accountId, now],
    );
    return row?.began_at ?? now;
  }
}

/** For an account `a`: owners and admins of organizations, owners of clients; not the doctor. */
const HAS_POWER = `a.email NOT LIKE '${THROW_AWAY}' AND (
  EXISTS (SELECT FROM organization_memberships m
    WHERE m.account_id = a.id AND m.role IN ('owner', 'admin'))
  OR EXISTS (SELECT FROM clients c WHERE c.owner_account_id = a.id))`;

const hasWay = (passkeys: string, issuers: string): string => `(
  (${passkeys}::boolean AND EXISTS (SELECT FROM passkeys p WHERE p.account_id = a.id))
  OR EXISTS (SELECT FROM account_identities i
    WHERE i.account_id = a.id AND i.issuer = ANY(${issuers}::text[])))`;

/** Returns the ids of active users who must have a strong sign-in method and have none yet. */
export async function whoOwesAWay(database: Queries, ways: StrongWays): Promise<string[]> {
  const rows = await database.query<{ id: string }>(
    `SELECT a.id FROM accounts a
      WHERE a.suspended_at IS NULL AND ${HAS_POWER} AND NOT ${hasWay('$1', '$2')} ORDER BY a.id`,
    [ways.passkeys, ways.issuers],
  );
  return rows.map(({ id }) => id);
}
