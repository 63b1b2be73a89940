/** The activity of all users, for operators, who search it by user, subject and time. */
import type { Queries } from '../../storage/queries.ts';
import { ACTIVITY_COLUMNS, type ActivityRecord, type ActivityRow, activityFrom } from './activity.ts';
import { type Action, actionInEnglish, type Details } from './activity-words.ts';

/** Actions that end something that `details` names, such as an API key. The index `activity_ends` has the same list. */
export const ENDS = [
  'api_key_revoked',
  'passkey_removed',
  'signed_out_elsewhere',
  'organization_removed',
  'warehouse_removed',
  'client_secret_removed',
  'client_renewed',
] as const satisfies readonly Action[];

export interface AuditQuestion {
  readonly accountId?: string | undefined;
  readonly clientId?: string | undefined;
  readonly action?: ActivityRecord['action'] | undefined;
  readonly actor?: ActivityRecord['actor'] | undefined;
  readonly requestId?: string | undefined;
  /** Selects records with this action that contain these details. A list in a record may have further values. */
  readonly end?: { readonly action: (typeof ENDS)[number]; readonly details: Details } | undefined;
  readonly importId?: string | undefined;
  readonly since?: Date | undefined;
  /** Records of this time or later are left out. */
  readonly until?: Date | undefined;
  readonly before?: number | undefined;
  readonly limit: number;
}

export interface AuditRecord extends ActivityRecord {
  /** The address of the account whose log contains the record; absent once the account is deleted. */
  readonly email?: string;
}

export function createAudit({ database }: { readonly database: Queries }) {
  async function find(question: AuditQuestion): Promise<AuditRecord[]> {
    const { accountId, clientId, action, actor, requestId, importId } = question;
    const { end, since, until, before, limit } = question;
    const asked = [
      ['account_id = $', accountId],
      [`${DETAIL.clientId} = $`, clientId],
      ['action = $', end?.action ?? action],
      ['actor = $', actor],
      ['request_id = $', requestId],
      [`${DETAIL.importId} = $`, importId],
      ['details @> $', end && JSON.stringify(end.details)],
      ['at >= $', since],
      ['at < $', until],
    ].filter(([, value]) => value !== undefined);
    const conditions = (first: number) =>
      asked.map(([condition], place) => String(condition).replaceAll('$', `$${place + first}`)).join(' AND ');
    const given = asked.map(([, value]) => value);
    const read = async (found: string, values: unknown[]) =>
      database.query<AuditRow>(`SELECT found.*, ${EMAIL} FROM (${found}) found ORDER BY id DESC`, values);
    if (before === undefined && (end || requestId !== undefined)) {
      // Usually few entries match. Without MATERIALIZED, PostgreSQL may search the whole log for them.
      const few = `WITH few AS MATERIALIZED (SELECT ${ACTIVITY_COLUMNS} FROM activity WHERE ${conditions(2)})`;
      return (await read(`${few} SELECT * FROM few ORDER BY id DESC LIMIT $1`, [limit, ...given])).map(auditRecordFrom);
    }
    const owner = accountId === undefined ? DETAIL.clientId : 'account_id';
    if (before === undefined && asked.length === 1 && (accountId ?? clientId) !== undefined) {
      // Use the order of the index. With `=` instead of BETWEEN, PostgreSQL may read the whole log in the order of ids.
      const latest = `SELECT ${ACTIVITY_COLUMNS} FROM activity WHERE ${owner} BETWEEN $2 AND $2`;
      return (await read(`${latest} ORDER BY ${owner}, id DESC LIMIT $1`, [limit, ...given])).map(auditRecordFrom);
    }
    const [ids] = await database.query<{ first: number; last: number }>(IDS, [since, until]);
    const { first = 0, last = 0 } = ids ?? {};
    const rows: AuditRow[] = [];
    // Search in ranges of ids. Over all ids, PostgreSQL may read the whole log until enough entries match.
    for (let to = Math.min(last, (before ?? last + 1) - 1); to >= first; to -= SCANNED) {
      const range = `SELECT ${ACTIVITY_COLUMNS} FROM activity WHERE id > $2 AND id <= $3`;
      const step = await read(
        `${[range, ...(asked.length > 0 ? [conditions(4)] : [])].join(' AND ')} ORDER BY id DESC LIMIT $1`,
        [limit - rows.length, to - SCANNED, to, ...given],
      );
      rows.push(...step);
      if (rows.length === limit) break;
    }
    return rows.map(auditRecordFrom);
  }

  return { find };
}

type AuditRow = ActivityRow & { readonly email: string | null };

const EMAIL = '(SELECT email FROM accounts WHERE id = found."accountId") AS email';

const auditRecordFrom = ({ email, ...row }: AuditRow): AuditRecord => ({
  ...activityFrom(row),
  ...(email !== null && { email }),
});

/** Returns an entry as JSON, without email address, because external logs must name users only by id. */
export const auditEntry = (record: AuditRecord) => {
  const { id, at, actor, action, accountId, details, origin, by } = record;
  return {
    id,
    at,
    actor,
    action,
    what: actionInEnglish(record).what,
    account_id: accountId ?? null,
    details,
    operator: by?.operator ?? null,
    reason: by?.reason ?? null,
    address: origin?.address ?? null,
    browser: origin?.browser ?? null,
    request_id: record.requestId ?? null,
  };
};

const SCANNED = 20_000;

const lastBefore = (time: string): string =>
  `(SELECT id FROM activity WHERE at < ${time}::timestamptz ORDER BY at DESC LIMIT 1)`;

/**
 * Selects the range of ids for a range of times. Later entries usually have higher ids, but not always, because several
 * nodes write at once. The range is therefore extended by 1,000 ids at both ends.
 */
const IDS = `SELECT greatest(coalesce(${lastBefore('$1')}, 0) - 1000,
      (SELECT min(id) FROM activity))::float8 AS first,
    CASE WHEN $2::timestamptz IS NULL THEN (SELECT max(id) FROM activity)
      ELSE coalesce(${lastBefore('$2')}, 0) + 1000 END::float8 AS last`;
const DETAIL = {
  clientId: "(details ->> 'client_id')",
  importId: "(details ->> 'import_id')",
};
