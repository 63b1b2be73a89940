/** Which single authorizations were ended, and why: for whoever asks, and to be carried out again. */
import type { Logger } from 'pino';
import type { Activity, NewActivity, Origin } from '../accounts/activity/activity.ts';
import type { EndingCause } from '../accounts/activity/activity-words.ts';
import type { Clock } from '../clock.ts';
import { tellEveryNode } from '../storage/change-feed.ts';
import type { Database, Queries } from '../storage/queries.ts';
import type { Authorization } from './authorization.ts';

export interface Revocation {
  readonly authorization: Pick<Authorization, 'id' | 'accountId' | 'clientId'>;
  readonly cause: EndingCause;
  readonly actor: NewActivity['actor'];
  readonly origin?: Origin;
}

/** An end as it is remembered. */
export interface RecordedEnd {
  readonly id: string;
  readonly accountId: string;
  readonly clientId: string;
  readonly at: Date;
  readonly cause: EndingCause;
}

export interface Revocations {
  /** Keeps it, and tells the person's log. The first cause stays. */
  record(revocation: Revocation): Promise<void>;
  /**
   * The same, for a request that neither waits for it nor depends on it: it is tried again until
   * it is written, for as long as this process lives.
   *
   * @param first what must be done before, each time; answers whether there is something to record.
   */
  note(revocation: Revocation, first?: () => Promise<boolean>): void;
  /** Tells every node that this one is ended, recorded or not. */
  tell(id: string): Promise<void>;
  /** The same of the machine tokens of a client, one of which is; as with `note`. */
  noteMachineToken(clientId: string): void;
  tellMachineToken(clientId: string): Promise<void>;
  /** Undefined for one that was not ended by itself. */
  find(id: string): Promise<RecordedEnd | undefined>;
  /** How many there are to look through. */
  countSince(since: Date | undefined): Promise<number>;
  /** The latest first, at most `limit`, older than the one `before`. */
  latest(page: {
    readonly limit: number;
    readonly since?: Date | undefined;
    readonly before?: RecordedEnd | undefined;
  }): Promise<readonly RecordedEnd[]>;
  /** Forgets those of an account that is being deleted. */
  forgetAccount(accountId: string, tx: Queries): Promise<void>;
  /** Forgets at most `limit` that are older than `olderThan`. @returns how many it were. */
  removeOlderThan(olderThan: Date, limit: number): Promise<number>;
  /** Writes what was noted, as far as the database takes it. */
  close(): Promise<void>;
}

/** Milliseconds until what could not be written is tried again. */
const RETRY_PAUSE = 5_000;
/** More than that is not kept in memory while the database is away. */
const MOST_UNWRITTEN = 10_000;

/** What is written beside a request. */
interface Writing {
  readonly write: () => Promise<void>;
  /** For the log. */
  readonly about: Readonly<Record<string, unknown>>;
}

const RECORDED = `SELECT id, at, cause, account_id AS "accountId", client_id AS "clientId"
  FROM ended_authorizations`;

export function createRevocations(parts: {
  readonly database: Database;
  readonly clock: Clock;
  readonly activity: Activity;
  /** Told of what was noted and could not be written. */
  readonly log: Pick<Logger, 'warn'>;
}): Revocations {
  const { database, clock, activity, log } = parts;
  const underWay = new Set<Promise<void>>();
  const unwritten: Writing[] = [];
  let retry: NodeJS.Timeout | undefined;

  async function record({ authorization, cause, actor, origin }: Revocation): Promise<void> {
    const { id, accountId, clientId } = authorization;
    await database.transaction(async (tx) => {
      // Beside the record, and tried again with it: the token store that ended it tells nobody.
      await tellEveryNode(tx, 'authorizations', id);
      const recorded = await tx.query<{ name: string | null }>(
        // Of an account that is gone nothing is dead or alive, and nobody asks.
        `INSERT INTO ended_authorizations (id, at, cause, account_id, client_id)
          SELECT $1, $2, $3, id, $5 FROM accounts WHERE id = $4 FOR KEY SHARE
          ON CONFLICT DO NOTHING
          RETURNING (SELECT name FROM clients WHERE id = $5) AS name`,
        [id, new Date(clock()), cause, accountId, clientId],
      );
      if (!recorded[0]) return;
      const details = { client_id: clientId, client_name: recorded[0].name ?? '', cause };
      await activity.record({ action: 'tokens_revoked', actor, accountId, details, origin }, tx);
    });
  }

  function attempt(writing: Writing): void {
    const written = writing
      .write()
      .catch((err: unknown) => {
        log.warn({ err, ...writing.about }, 'why an authorization ended is not recorded yet');
        if (unwritten.length < MOST_UNWRITTEN) unwritten.push(writing);
        retry ??= setTimeout(writeAgain, RETRY_PAUSE).unref();
      })
      .finally(() => underWay.delete(written));
    underWay.add(written);
  }

  function writeAgain(): void {
    retry = undefined;
    for (const writing of unwritten.splice(0)) attempt(writing);
  }

  async function tellMachineToken(clientId: string): Promise<void> {
    await tellEveryNode(database, 'clients', clientId);
  }

  return {
    record,

    note(revocation, first) {
      const { authorization, origin: _, ...about } = revocation;
      const { clientId } = authorization;
      const write = async (): Promise<void> => {
        if (!first || (await first())) await record(revocation);
      };
      attempt({ write, about: { clientId, ...about } });
    },

    async tell(id) {
      await tellEveryNode(database, 'authorizations', id);
    },

    tellMachineToken,

    noteMachineToken(clientId) {
      attempt({ write: () => tellMachineToken(clientId), about: { clientId } });
    },

    async find(id) {
      const [end] = await database.query<RecordedEnd>(`${RECORDED} WHERE id = $1`, [id]);
      return end;
    },

    async countSince(since) {
      const [row] = await database.query<{ count: number }>(
        `SELECT count(*)::integer AS count FROM ended_authorizations
          WHERE $1::timestamptz IS NULL OR at >= $1`,
        [since ?? null],
      );
      return row?.count ?? 0;
    },

    latest({ limit, since, before }) {
      return database.query(
        `${RECORDED}
          WHERE ($2::timestamptz IS NULL OR at >= $2)
            AND ($3::timestamptz IS NULL OR (at, id) < ($3, $4))
          ORDER BY at DESC, id DESC LIMIT $1`,
        [limit, since ?? null, before?.at ?? null, before?.id ?? null],
      );
    },

    async forgetAccount(accountId, tx) {
      await tx.query('DELETE FROM ended_authorizations WHERE account_id = $1', [accountId]);
    },

    async removeOlderThan(olderThan, limit) {
      const removed = await database.query(
        `DELETE FROM ended_authorizations WHERE id IN (
            SELECT id FROM ended_authorizations
            WHERE at < $1 ORDER BY at LIMIT $2 FOR UPDATE SKIP LOCKED) RETURNING 1`,
        [olderThan, limit],
      );
      return removed.length;
    },

    async close() {
      await Promise.all(underWay);
      clearTimeout(retry);
      writeAgain();
      await Promise.all(underWay);
      clearTimeout(retry);
    },
  };
}
