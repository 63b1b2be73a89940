/**
 * The wait before a mailed link recovers an account that requires more than a password. The mailbox
 * alone proves less than what was lost (OWASP ASVS 5.0, 6.4.3 and 6.4.4).
 */
import type { Clock } from '../../base/clock.ts';
import { lockedTransactionOf } from '../../storage/account-turns.ts';
import type { Database, Queries } from '../../storage/queries.ts';
import type { Account } from '../account.ts';
import type { Activity, Origin } from '../activity/activity.ts';
import type { StrongSignIns } from '../strong-sign-ins.ts';
import type { PasswordLink, PasswordLinks } from './password-links.ts';

/** Thrown if a mailed link alone does not recover the account at all, or not yet. */
export class RecoveryMustWait extends Error {}

export interface RecoveryWait {
  readonly startedAt: Date;
  /** When the wait ends: afterwards a mailed link alone recovers the account. */
  readonly readyAt: Date;
  /** When the recovery expires: afterwards it must be started again. */
  readonly endsAt: Date;
  readonly isReady: boolean;
}

export type RecoveryWaits = ReturnType<typeof createRecoveryWaits>;

/** How long after the wait a new link still recovers the account. */
const USABLE_SECONDS = 7 * 86_400;

export function createRecoveryWaits(parts: {
  readonly database: Database;
  readonly clock: Clock;
  readonly links: PasswordLinks;
  readonly activity: Pick<Activity, 'record'>;
  readonly waitSeconds: number;
  readonly strongSignIns: Pick<StrongSignIns, 'wouldBeRequired'>;
}) {
  const { database, clock, links, activity, waitSeconds, strongSignIns } = parts;

  function waitFrom(startedAt: Date): RecoveryWait {
    const ready = startedAt.getTime() + waitSeconds * 1000;
    const endsAt = new Date(ready + USABLE_SECONDS * 1000);
    return { startedAt, readyAt: new Date(ready), endsAt, isReady: ready <= clock() };
  }

  async function find(accountId: string, queries: Queries = database): Promise<RecoveryWait | undefined> {
    const [row] = await queries.query<{ started_at: Date }>(
      'SELECT started_at FROM recovery_waits WHERE account_id = $1',
      [accountId],
    );
    const wait = row && waitFrom(row.started_at);
    return wait && wait.endsAt.getTime() > clock() ? wait : undefined;
  }

  const record = (what: string, accountId: string, origin: Origin, tx: Queries): Promise<void> =>
    activity.record(
      // Use an existing name of an action: nodes of the previous version would not know a new one.
      { action: 'account_changed', actor: 'person', accountId, origin, details: { changed: what } },
      tx,
    );

  return {
    waitSeconds,
    /** Returns the recovery started for an account, unless it is done, cancelled or too old. */
    find,

    /** True if this link requires a wait that has not ended yet, or has not even started. */
    async mustWait({ account, purpose }: PasswordLink, queries: Queries = database): Promise<boolean> {
      // The operator or a provider has checked who the user is.
      if (purpose !== 'forgotten') return false;
      const requirement = await strongSignIns.wouldBeRequired(account.id, queries);
      // Within the grace period a password is enough for a user who has no other method.
      if (!requirement?.isOver && !requirement?.hasStrongMethod) return false;
      return !(await find(account.id, queries))?.isReady;
    },

    /**
     * Consumes a link, informs the user and then starts the wait. If a wait has already started,
     * the link stays valid. If the mail fails, the link is consumed all the same.
     *
     * @param inform mails the user and resolves with true if the mail was sent.
     * @returns the wait, which may have been started before; `not informed` if the mail was not
     *   sent (then no wait is started); undefined for a link that is used or expired.
     */
    async start(
      token: string,
      origin: Origin,
      inform: (account: Account, wait: RecoveryWait) => Promise<boolean>,
    ): Promise<RecoveryWait | 'not informed' | undefined> {
      const link = await links.find(token);
      if (!link) return undefined;
      const { account } = link;
      // Parallel requests wait here, and then find that the link was used.
      const before = await lockedTransactionOf(database, account.id, async (tx) => {
        return (await find(account.id, tx)) ?? ((await links.use(token, tx)) ? 'none' : undefined);
      });
      if (before !== 'none') return before;
      const wait = waitFrom(new Date(clock()));
      // Send the mail before the wait begins: a wait must not begin without the user's knowledge.
      if (!(await inform(account, wait))) return 'not informed';
      const started = await database.transaction(async (tx) => {
        const [row] = await tx.query<{ started_at: Date }>(
          `INSERT INTO recovery_waits (account_id, started_at)
            SELECT id, $2 FROM accounts WHERE id = $1 AND suspended_at IS NULL AND email = $3
            ON CONFLICT (account_id) DO UPDATE SET started_at = excluded.started_at
              WHERE recovery_waits.started_at <= $4
            RETURNING started_at`,
          [account.id, wait.startedAt, account.email, new Date(clock() - (waitSeconds + USABLE_SECONDS) * 1000)],
        );
        if (row) await record('recovery started', account.id, origin, tx);
        return row;
      });
      return started ? wait : find(account.id);
    },

    /** Cancels the recovery and every open link. @returns true if there was a recovery. */
    stop: (accountId: string, origin: Origin): Promise<boolean> =>
      database.transaction(async (tx) => {
        const stopped = await tx.query('DELETE FROM recovery_waits WHERE account_id = $1 RETURNING 1', [accountId]);
        if (stopped.length === 0) return false;
        await links.forget(accountId, tx);
        await record('recovery stopped', accountId, origin, tx);
        return true;
      }),
  };
}
