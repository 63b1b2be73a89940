/** Decides which users must sign in with more than a password, because their accounts can affect other users. */
import type { Clock } from '../base/clock.ts';
import type { Queries } from '../storage/queries.ts';
import { DOCTOR_EMAIL_PATTERN } from './account.ts';
import { canBeStrong, type UpstreamStrength } from './sign-in-strength.ts';

export interface StrongMethods {
  readonly passkeys: boolean;
  readonly issuers: readonly string[];
}

interface EnabledMethods {
  readonly passkeys: boolean;
  readonly providers: readonly UpstreamStrength[];
}

export const listStrongMethods = (signIn: EnabledMethods): StrongMethods => ({
  passkeys: signIn.passkeys,
  issuers: signIn.providers.filter(canBeStrong).map(({ issuer }) => issuer),
});

export interface SignInRequirement {
  /** The end of the grace period, after which a password alone is not enough. */
  readonly until: Date;
  readonly isOver: boolean;
  /** True if the user has a passkey or a link with a strong provider. */
  readonly hasStrongMethod: boolean;
}

export type StrongSignIns = ReturnType<typeof createStrongSignIns>;

export function createStrongSignIns(parts: {
  readonly database: Queries;
  readonly clock: Clock;
  readonly signIn: EnabledMethods & {
    readonly require: 'off' | 'passkey-or-upstream';
    readonly requireGraceSeconds: number;
  };
}) {
  const { database, clock, signIn } = parts;
  const strong = listStrongMethods(signIn);
  return {
    /** Returns until when a password alone is enough; undefined if always. The first call starts the grace period. */
    requirementFor: (accountId: string): Promise<SignInRequirement | undefined> =>
      findRequirement(accountId, database, startGrace),
    /** Like `requirementFor`, but starts no grace period, because the user does not see the result. */
    wouldBeRequired: (accountId: string, queries: Queries = database): Promise<SignInRequirement | undefined> =>
      findRequirement(accountId, queries, async () => new Date(clock())),
    async endGrace(accountId: string, tx: Queries): Promise<void> {
      await tx.query('UPDATE accounts SET grace_began_at = to_timestamp(0) WHERE id = $1', [accountId]);
    },
  };

  async function findRequirement(
    accountId: string,
    queries: Queries,
    startOfGrace: (accountId: string) => Promise<Date>,
  ): Promise<SignInRequirement | undefined> {
    if (signIn.require === 'off') return undefined;
    const [row] = await queries.query<{ has_strong: boolean; began_at: Date | null }>(
      `SELECT ${hasStrongMethod('$2', '$3')} AS has_strong, grace_began_at AS began_at
        FROM accounts a WHERE a.id = $1 AND ${HAS_POWER}`,
      [accountId, strong.passkeys, strong.issuers],
    );
    if (!row) return undefined;
    const beganAt = row.began_at ?? (await startOfGrace(accountId));
    const until = new Date(beganAt.getTime() + signIn.requireGraceSeconds * 1000);
    return { until, isOver: until.getTime() <= clock(), hasStrongMethod: row.has_strong };
  }

  async function startGrace(accountId: string): Promise<Date> {
    const now = new Date(clock());
    // Parallel calls all return the time that the first call has written.
    const [row] = await database.query<{ began_at: Date }>(
      `UPDATE accounts SET grace_began_at = coalesce(grace_began_at, $2) WHERE id = $1
        RETURNING grace_began_at AS began_at`,
      [accountId, now],
    );
    return row?.began_at ?? now;
  }
}

/** SQL: account `a` owns a client, or is owner or admin of an active organization. Excludes accounts of `doctor`. */
export const HAS_POWER = `a.email NOT LIKE '${DOCTOR_EMAIL_PATTERN}' AND (
  EXISTS (SELECT FROM organization_memberships m JOIN organizations o ON o.id = m.organization_id
    WHERE m.account_id = a.id AND m.role IN ('owner', 'admin') AND o.ended_at IS NULL)
  OR EXISTS (SELECT FROM clients c WHERE c.owner_account_id = a.id))`;

/** SQL: account `a` has a passkey or a linked account of these issuers. The arguments are names of SQL parameters. */
export const hasStrongMethod = (passkeys: string, issuers: string): string => `(
  (${passkeys}::boolean AND EXISTS (SELECT FROM passkeys p WHERE p.account_id = a.id))
  OR EXISTS (SELECT FROM account_identities i
    WHERE i.account_id = a.id AND i.issuer = ANY(${issuers}::text[])))`;

/**
 * SQL: the listed account `a` is active, must have a strong method, and has no link with the issuers in `$`. Do not
 * write `NOT "isSuspended"`: PostgreSQL then expects too many such accounts, and reads all memberships.
 */
export const OWES_STRONG_METHOD = `"suspendedAt" IS NULL AND ${HAS_POWER}
  AND NOT ${hasStrongMethod('false', '$')}`;
