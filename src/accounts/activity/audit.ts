/** The activity of all users, for operators: searched by user, subject and time. */
import type { Queries } from '../../storage/queries.ts';
import {
  ACTIVITY_COLUMNS,
  type ActivityRecord,
  type ActivityRow,
  activityFrom,
} from './activity.ts';
import { type Action, actionInEnglish } from './activity-words.ts';

export interface AuditQuestion {
  /** The account whose log contains the record. */
  readonly accountId?: string | undefined;
  readonly clientId?: string | undefined;
  readonly action?: ActivityRecord['action'] | undefined;
  readonly actor?: ActivityRecord['actor'] | undefined;
  /** The last four characters of the secret or API key that the record is about. */
  readonly lastFour?: string | undefined;
  /** The request that caused the record, `req_…`. */
  readonly requestId?: string | undefined;
  /** The import that caused the record, `imp_…`. */
  readonly importId?: string | undefined;
  /** The earliest time of a record, inclusive. */
  readonly since?: Date | undefined;
  /** The end of the time range, exclusive. */
  readonly until?: Date | undefined;
  /** Only records that are older than the record with this id. */
  readonly before?: number | undefined;
  readonly limit: number;
}

export interface AuditRecord extends ActivityRecord {
  /** The address of the account whose log contains the record; absent once the account is deleted. */
  readonly email?: string;
}

export type Audit = ReturnType<typeof createAudit>;

export interface RefusedSignIns extends Pick<ActivityRecord, 'action' | 'details'> {
  readonly id: string;
  readonly accountId: string;
  readonly email: string;
  readonly count: number;
  readonly first: Date;
  readonly last: Date;
}

const REFUSED_SIGN_INS: readonly Action[] = [
  'sign_in_failed',
  'sign_in_refused',
  'passkey_refused',
];

export const createAudit = ({ database }: { readonly database: Queries }) => ({
  /** Returns the newest records first. */
  async find(question: AuditQuestion): Promise<AuditRecord[]> {
    const { accountId, clientId, action, actor, lastFour, requestId, importId } = question;
    const { since, until, before, limit } = question;
    const asked = [
      ['account_id = $', accountId],
      [`${DETAIL.clientId} = $`, clientId],
      ['action = $', action],
      ['actor = $', actor],
      [`${DETAIL.lastFour} = $`, lastFour],
      ['request_id = $', requestId],
      [`${DETAIL.importId} = $`, importId],
      ['at >= $', since],
      [BEFORE, until],
      ['id < $', before],
    ].filter(([, value]) => value !== undefined);
    const conditions = asked.map(([condition], place) =>
      String(condition).replaceAll('$', `$${place + 2}`),
    );
    const rows = await database.query<AuditRow>(
      `SELECT found.*, ${EMAIL}
        FROM (
          SELECT ${ACTIVITY_COLUMNS} FROM activity
          WHERE ${['true', ...conditions].join(' AND ')} ORDER BY id DESC LIMIT $1
        ) found ORDER BY id DESC`,
      [limit, ...asked.map(([, value]) => value)],
    );
    return rows.map(auditRecordFrom);
  },

  /** Returns sign-ins refused after `since`, grouped by account and cause, latest first. */
  refusedSignIns: (since: Date, accountId?: string): Promise<RefusedSignIns[]> =>
    database.query<RefusedSignIns>(
      `SELECT v.account_id AS "accountId", a.email, v.action,
          v.details - 'count' AS details, max(v.id) AS id,
          sum(coalesce((v.details ->> 'count')::integer, 1))::integer AS count, min(v.at) AS first, max(v.at) AS last
        FROM activity v JOIN accounts a ON a.id = v.account_id
        WHERE v.action = ANY($1) AND v.at > $2 AND (v.account_id = $3 OR $3::text IS NULL)
        GROUP BY v.account_id, a.email, v.action, v.details - 'count' ORDER BY max(v.id) DESC`,
      [REFUSED_SIGN_INS, since, accountId ?? null],
    ),
});

export type AuditRow = ActivityRow & { readonly email: string | null };

/** A column of a statement whose entries are named `found`. */
export const EMAIL = '(SELECT email FROM accounts WHERE id = found.account_id) AS email';

export const auditRecordFrom = ({ email, ...row }: AuditRow): AuditRecord => ({
  ...activityFrom(row),
  ...(email !== null && { email }),
});

/** Returns an entry as JSON. Contains no email address, because logs name people by id only. */
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
    trace_id: record.traceId ?? null,
  };
};

/** Also compares the id, which grows with time: so the index skips later records. */
const BEFORE = `at < $ AND
  id <= coalesce((SELECT id FROM activity WHERE at < $ ORDER BY at DESC LIMIT 1), 0)`;
const DETAIL = {
  clientId: "(details ->> 'client_id')",
  lastFour: "(details ->> 'last_four')",
  importId: "(details ->> 'import_id')",
};
