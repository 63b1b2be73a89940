/** The security log: what happened to an account, for its user and for the operator's audit. */
import type { Clock } from '../../base/clock.ts';
import { currentRequest } from '../../base/current-request.ts';
import type { OperatedBy } from '../../base/operated-by.ts';
import { deleteExpired } from '../../storage/cleaning.ts';
import { type Queries, type RowOf, withoutNulls } from '../../storage/queries.ts';
import { isAway } from '../../storage/storage-unavailable.ts';
import { hasActiveSession } from '../account.ts';
import type { Action, Details } from './activity-words.ts';

/** The network address, browser and session of a request. Absent if an operator acted. */
export interface Origin {
  readonly address: string;
  readonly browser: string;
  /** The acting session. If it has ended, nothing is recorded and the transaction is rolled back. */
  readonly session?: { readonly uid: string; readonly generation: number };
}

/** The session of the acting user has ended during the request. */
export class SessionEnded extends Error {}

export interface NewActivity {
  readonly action: Action;
  /** `organization`: an owner or admin of an organization acted, and the record is in another user's log. */
  readonly actor: 'person' | 'operator' | 'client' | 'service' | 'organization';
  /** The account whose log contains the record; absent if the record concerns no user. */
  readonly accountId?: string | undefined;
  readonly details?: Details;
  readonly origin?: Origin | undefined;
  /** The operator of a command that a running service carries out. All other commands pass `by` to `createActivity`. */
  readonly by?: OperatedBy | undefined;
}

export interface ActivityRecord extends NewActivity {
  /** Ids grow with time. The next page contains records with ids below the smallest id of this page. */
  readonly id: number;
  readonly at: Date;
  readonly details: Details;
  /** The id of the request that caused the record, as in log lines; absent for operator commands. */
  readonly requestId?: string;
}

export type Activity = ReturnType<typeof createActivity>;

interface ActivityPage {
  readonly limit: number;
  readonly before?: number;
  readonly actions?: readonly Action[] | undefined;
  /** Selects records whose details contain this text, in any letter case, or whose address is this text. */
  readonly text?: string | undefined;
}

const MAX_BROWSER_LENGTH = 200;
const MINUTE_MS = 60_000;
export const ACTIVITY_COLUMNS = `id, at, account_id AS "accountId", actor, action, details, address, browser,
  operator, reason, request_id AS "requestId"`;

export interface ActivityRow extends RowOf<Omit<ActivityRecord, 'id' | 'origin' | 'by'>> {
  readonly id: string;
  readonly address: string | null;
  readonly browser: string | null;
  readonly operator: string | null;
  readonly reason: string | null;
}

export function createActivity(parts: {
  readonly database: Queries;
  readonly clock: Clock;
  /** The operator who runs this command, recorded with every action of it; absent in the service. */
  readonly by?: OperatedBy;
}) {
  const { database, clock, by } = parts;
  const operatedBy = (actor: NewActivity['actor'], given = by): [string | null, string | null] =>
    actor === 'operator' ? [given?.operator ?? null, given?.reason ?? null] : [null, null];
  /** Refused sign-ins that are not yet recorded, by account and cause. */
  const refused = new Map<string, { entry: NewActivity; since: number; count: number }>();

  /** Pass the transaction of the change, so that the change and its record are stored together. @throws SessionEnded */
  async function record(entry: NewActivity, tx: Queries = database): Promise<void> {
    if (!(await insert(entry, tx))) throw new SessionEnded();
  }

  /** Returns false if the session has ended or, with `late`, if the account was deleted. */
  async function insert(
    { action, actor, accountId, details = {}, origin, by }: NewActivity,
    tx: Queries,
    { late = false } = {},
  ): Promise<boolean> {
    const recorded = await tx.query(
      `INSERT INTO activity (at, account_id, actor, action, details, address, browser,
          operator, reason, request_id)
        SELECT ${tx.now()}, $1, $2, $3, $4, $5, $6, $7, $8, $11
          WHERE ($9::text IS NULL OR EXISTS (SELECT FROM accounts
              WHERE id = $1 AND ${hasActiveSession('$9', '$10')}))
            ${late ? 'AND ($1 IS NULL OR EXISTS (SELECT FROM accounts WHERE id = $1 FOR KEY SHARE))' : ''}
        RETURNING 1`,
      [
        accountId ?? null,
        actor,
        action,
        JSON.stringify(details),
        ...valuesOf(origin),
        ...operatedBy(actor, by),
        origin?.session?.uid ?? null,
        origin?.session?.generation ?? null,
        idOfRequest(),
      ],
    );
    return recorded.length > 0;
  }

  return {
    record,

    /**
     * Records the first refused sign-in at once, and only counts further equal ones, so that an attacker cannot fill
     * the log. `writeRefused` records the count.
     */
    async recordRefused({ origin, ...refusal }: NewActivity): Promise<void> {
      // Omit the session: the refusal does not depend on it, and it may end before the count is written.
      const from = origin && { address: origin.address, browser: origin.browser };
      const entry: NewActivity = { ...refusal, origin: from };
      const key = JSON.stringify([entry.accountId, entry.action, entry.details]);
      const known = refused.get(key);
      const group = known ?? { entry, since: clock(), count: 0 };
      group.entry = entry;
      group.count += 1;
      if (known) return;
      refused.set(key, group);
      await insert(entry, database, { late: true });
      group.count -= 1;
    },

    /**
     * Writes the counts of refused sign-ins. Call this every minute, and with `isLast` at the shutdown. Keeps the
     * counts that cannot be recorded, and then throws the first error.
     */
    async writeRefused(isLast = false): Promise<void> {
      const errors: unknown[] = [];
      for (const [key, group] of refused) {
        const { entry, since, count } = group;
        const age = clock() - since;
        // A negative age means that the clock was set back, so the real age is unknown.
        if (!isLast && age >= 0 && age < MINUTE_MS) continue;
        if (count === 0) {
          refused.delete(key);
          continue;
        }
        // Keep the group: without it, the next refusal of the same kind would be recorded at once.
        Object.assign(group, { since: clock(), count: 0 });
        const counted = { ...entry, details: { ...entry.details, count } };
        await insert(counted, database, { late: true }).catch((error: unknown) => {
          group.count += count;
          // Stop here: each of the other entries would wait for the same unavailable database.
          if (isAway(error)) throw error;
          errors.push(error);
        });
      }
      if (errors.length > 0) throw errors[0];
    },

    /** Records many actions, all with the same `origin`. Unlike `record`, does not check the session in `origin`. */
    async recordAll(entries: readonly Omit<NewActivity, 'origin'>[], tx: Queries, origin?: Origin): Promise<void> {
      if (entries.length === 0) return;
      await tx.query(
        `INSERT INTO activity (at, account_id, actor, action, details, address, browser,
            operator, reason, request_id)
          SELECT ${tx.now()}, account_id, actor, action, details, $5, $6,
            CASE actor WHEN 'operator' THEN $7 END, CASE actor WHEN 'operator' THEN $8 END, $9
          FROM unnest($1::text[], $2::text[], $3::text[], $4::jsonb[])
            WITH ORDINALITY AS entry (account_id, actor, action, details, position)
          ORDER BY position`,
        [
          entries.map(({ accountId }) => accountId ?? null),
          entries.map(({ actor }) => actor),
          entries.map(({ action }) => action),
          entries.map(({ details = {} }) => JSON.stringify(details)),
          ...valuesOf(origin),
          ...operatedBy('operator'),
          idOfRequest(),
        ],
      );
    },

    /**
     * Returns an INSERT for use inside a larger statement. Adds an entry for each row of `rows`, a table or CTE of that
     * statement, and merges the row's column `details` into the entry's own.
     *
     * @param use adds a parameter to the statement and returns the parameter's name
     */
    partOf(
      { action, actor, accountId, details = {}, origin }: NewActivity,
      rows: string,
      use: (value: unknown) => string,
    ): string {
      const [address, browser] = valuesOf(origin);
      const [operator, reason] = operatedBy(actor);
      return `INSERT INTO activity (at, account_id, actor, action, details, address, browser,
          operator, reason, request_id)
        SELECT ${database.now()}, ${use(accountId ?? null)}::text,
          ${use(actor)}::text, ${use(action)}::text,
          ${use(JSON.stringify(details))}::jsonb || ${rows}.details, ${use(address)}::text,
          ${use(browser)}::text, ${use(operator)}::text, ${use(reason)}::text, ${use(idOfRequest())}::text
        FROM ${rows}`;
    },

    /**
     * Returns the newest records of the account's log. This includes the renewals of clients: each is stored once, and
     * shown to all users who were connected to the client.
     */
    async of(
      accountId: string,
      { limit, before = Number.MAX_SAFE_INTEGER, actions, text }: ActivityPage,
    ): Promise<ActivityRecord[]> {
      const rows = await database.query<ActivityRow>(
        `(SELECT ${ACTIVITY_COLUMNS} FROM activity WHERE account_id = $1 AND ${ON_PAGE}
            ORDER BY id DESC LIMIT $3)
          UNION ALL (SELECT ${RENEWAL_COLUMNS} FROM connections n JOIN activity
              ON action = 'client_renewed' AND details ->> 'client_id' = n.client_id
            WHERE n.account_id = $1 AND activity.account_id IS DISTINCT FROM $1
              AND at >= n.connected_at AND (n.ended_at IS NULL OR at <= n.ended_at)
              AND ${ON_PAGE_OF_RENEWALS}
            ORDER BY id DESC LIMIT $3)
          ORDER BY id DESC LIMIT $3`,
        [accountId, before, limit, actions ?? null, text ?? null],
      );
      return rows.map(activityFrom);
    },

    removeOlderThan: (olderThan: Date, limit: number): Promise<number> =>
      deleteExpired(database, [{ table: 'activity', column: 'at' }], olderThan, limit),
  };
}

/** SQL condition: the record is on the requested page. A search uses only the texts that the reader sees. */
const onPage = (details: string, address: string): string => `id < $2 AND ($4::text[] IS NULL OR action = ANY($4))
  AND ($5::text IS NULL OR strpos(lower((${details})::text), lower($5)) > 0 OR ${address} = $5)`;

const ON_PAGE = onPage('details', 'address');

/** Users see that a client was renewed, but not by whom or from where, and nothing about its secret. */
const RENEWAL_DETAILS = `details - 'last_four' - 'ended_secrets'`;
const RENEWAL_COLUMNS = `id, at, NULL, CASE actor WHEN 'person' THEN 'client' ELSE actor END, action,
  ${RENEWAL_DETAILS}, NULL, NULL, NULL, NULL, NULL`;
const ON_PAGE_OF_RENEWALS = onPage(RENEWAL_DETAILS, 'NULL');

/** Replaces characters that PostgreSQL may reject, because a User-Agent can contain anything, even NUL. */
export const keptBrowser = (browser: string): string =>
  browser.replace(/[^\x20-\x7e]/g, '?').slice(0, MAX_BROWSER_LENGTH);

const valuesOf = (origin: Origin | undefined): [string | null, string | null] => [
  origin?.address ?? null,
  origin ? keptBrowser(origin.browser) : null,
];

const idOfRequest = (): string | null => currentRequest()?.requestId ?? null;

export function activityFrom({ id, address, browser, operator, reason, ...row }: ActivityRow): ActivityRecord {
  return {
    ...withoutNulls<Omit<ActivityRecord, 'id' | 'origin' | 'by'>>(row),
    id: Number(id),
    ...(address !== null && { origin: { address, browser: browser ?? '' } }),
    ...(operator !== null && { by: { operator, ...(reason !== null && { reason }) } }),
  };
}
