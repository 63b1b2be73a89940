/**
 * The wait before a mailed link recovers an account of which more than a password is asked. The
 * mailbox alone proves less than what was lost (OWASP ASVS 5.0, 6.4.3 and 6.4.4).
 */
import type { Clock } from '../../base/clock.ts';
import { lockedTransactionOf } from '../../storage/account-turns.ts';
import type { Database, Queries } from '../../storage/queries.ts';
import type { Account } from '../account.ts';
import type { Activity, Origin } from '../activity/activity.ts';
import type { StrongerSignIns } from '../stronger-sign-ins.ts';
import type { PasswordLink, PasswordLinks } from './links.ts';

/** A mailed link alone does not open this account, or not yet. */
export class RecoveryMustWait extends Error {}

export interface RecoveryWait {
  readonly startedAt: Date;
  /** From then on a mailed link opens the account as it does any other. */
  readonly readyAt: Date;
  /** From then on the recovery has to be started anew. */
  readonly endsAt: Date;
  readonly isReady: boolean;
}

export type RecoveryWaits = ReturnType<typeof createRecoveryWaits>;

/** How long after the wait another link still recovers the account. */
const USABLE_SECONDS = 7 * 86_400;

export function createRecoveryWaits(parts: {
  readonly database: Database;
  readonly clock: Clock;
  readonly links: PasswordLinks;
  readonly activity: Pick<Activity, 'record'>;
  readonly waitSeconds: number;
  readonly strongerSignIns: Pick<StrongerSignIns, 'wouldBeDemanded'>;
}) {
  const { database, clock, links, activity, waitSeconds, strongerSignIns } = parts;

  function waitFrom(startedAt: Date): RecoveryWait {
    const ready = startedAt.getTime() + waitSeconds * 1000;
    const endsAt = new Date(ready + USABLE_SECONDS * 1000);
    return { startedAt, readyAt: new Date(ready), endsAt, isReady: ready <= clock() };
  }

  async function find(
    accountId: string,
    queries: Queries = database,
  ): Promise<RecoveryWait | undefined> {
    const [row] = await queries.query<{ started_at: Date }>(
      'SELECT started_at FROM recovery_waits WHERE account_id = $1',
      [accountId],
    );
    const wait = row && waitFrom(row.started_at);
    return wait && wait.endsAt.getTime() > clock() ? wait : undefined;
  }

  const record = (what: string, accountId: string, origin: Origin, tx: Queries): Promise<void> =>
    activity.record(
      // An action of its own would be unknown to nodes of the version before.
      { action: 'account_changed', actor: 'person', accountId, origin, details: { changed: what } },
      tx,
    );

  return {
    waitSeconds,
    /** The recovery that was started for an account, if it is neither done nor cancelled nor too old. */
    find,

    /** Whether this link opens the account only after a wait that is not over, or not started. */
    async mustWait(
      { account, purpose }: PasswordLink,
      queries: Queries = database,
    ): Promise<boolean> {
      // The operator has checked who it is, or a provider has just proved it.
      if (purpose !== 'forgotten') return false;
      const demand = await strongerSignIns.wouldBeDemanded(account.id, queries);
      // Within the grace a password is enough for a person who has nothing else.
      if (!demand?.isOver && !demand?.hasWay) return false;
      return !(await find(account.id, queries))?.isReady;
    },

    /**
     * Uses a link up to start the wait, once the person is informed.
     *
     * @param inform mails the person. @returns whether the mail was sent.
     * @returns the wait, which may have been started before; `not informed`, with nothing started, if
     *   the mail was not sent; undefined for a link that is used or expired.
     */
    async start(
      token: string,
      origin: Origin,
      inform: (account: Account, wait: RecoveryWait) => Promise<boolean>,
    ): Promise<RecoveryWait | 'not informed' | undefined> {
      const link = await links.find(token);
      if (!link) return undefined;
      const { account } = link;
      // Of several at once the others wait, and find the link used.
      const before = await lockedTransactionOf(database, account.id, async (tx) => {
        return (await find(account.id, tx)) ?? ((await links.use(token, tx)) ? 'none' : undefined);
      });
      if (before !== 'none') return before;
      const wait = waitFrom(new Date(clock()));
      // Mail first: a wait that its person does not know of must not run.
      if (!(await inform(account, wait))) return 'not informed';
      const started = await database.transaction(async (tx) => {
        const [row] = await tx.query<{ started_at: Date }>(
          `INSERT INTO recovery_waits (account_id, started_at)
            SELECT id, $2 FROM accounts WHERE id = $1 AND suspended_at IS NULL AND email = $3
            ON CONFLICT (account_id) DO UPDATE SET started_at = excluded.started_at
              WHERE recovery_waits.started_at <= $4
            RETURNING started_at`,
          [
            account.id,
            wait.startedAt,
            account.email,
            new Date(clock() - (waitSeconds + USABLE_SECONDS) * 1000),
          ],
        );
        if (row) await record('recovery started', account.id, origin, tx);
        return row;
      });
      return started ? wait : find(account.id);
    },

    /** Cancels the recovery and every open link. @returns whether there was one. */
    stop: (accountId: string, origin: Origin): Promise<boolean> =>
      database.transaction(async (tx) => {
        const stopped = await tx.query(
          'DELETE FROM recovery_waits WHERE account_id = $1 RETURNING 1',
          [accountId],
        );
        if (stopped.length === 0) return false;
        await links.forget(accountId, tx);
        await record('recovery stopped', accountId, origin, tx);
        return true;
      }),
  };
}
