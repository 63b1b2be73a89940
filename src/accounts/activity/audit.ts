/** The activity of everybody, for whoever runs the service: asked by whom, about what and when. */
import type { Queries } from '../../storage/queries.ts';
import {
  ACTIVITY_COLUMNS,
  type ActivityRecord,
  type ActivityRow,
  activityFrom,
} from './activity.ts';
import type { Action } from './activity-words.ts';

export interface AuditQuestion {
  /** In whose log it is. */
  readonly accountId?: string | undefined;
  readonly clientId?: string | undefined;
  readonly action?: ActivityRecord['action'] | undefined;
  readonly actor?: ActivityRecord['actor'] | undefined;
  /** The end of the secret or API key it was about. */
  readonly lastFour?: string | undefined;
  /** The request that made it, `req_…`. */
  readonly requestId?: string | undefined;
  /** The import that made it, `imp_…`. */
  readonly importId?: string | undefined;
  /** From then on. */
  readonly since?: Date | undefined;
  /** Before then. */
  readonly until?: Date | undefined;
  /** Older than the record of this id. */
  readonly before?: number | undefined;
  readonly limit: number;
}

export interface AuditRecord extends ActivityRecord {
  /** Of the person in whose log it is; absent once the account is gone. */
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
  /** The newest first. */
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
    const rows = await database.query<ActivityRow & { email: string | null }>(
      `SELECT found.*, (SELECT email FROM accounts WHERE id = found.account_id) AS email
        FROM (
          SELECT ${ACTIVITY_COLUMNS} FROM activity
          WHERE ${['true', ...conditions].join(' AND ')} ORDER BY id DESC LIMIT $1
        ) found ORDER BY id DESC`,
      [limit, ...asked.map(([, value]) => value)],
    );
    return rows.map(({ email, ...row }) => ({
      ...activityFrom(row),
      ...(email !== null && { email }),
    }));
  },

  /** Sign-ins that were refused after `since`, grouped by account and cause, latest first. */
  refusedSignIns: (since: Date, accountId?: string): Promise<RefusedSignIns[]> =>
    database.query<RefusedSignIns>(
      `SELECT v.account_id AS "accountId", a.email, v.action, v.details, max(v.id) AS id,
          count(*)::integer AS count, min(v.at) AS first, max(v.at) AS last
        FROM activity v JOIN accounts a ON a.id = v.account_id
        WHERE v.action = ANY($1) AND v.at > $2 AND (v.account_id = $3 OR $3::text IS NULL)
        GROUP BY v.account_id, a.email, v.action, v.details ORDER BY max(v.id) DESC`,
      [REFUSED_SIGN_INS, since, accountId ?? null],
    ),
});

/** By the id as well, which grows with time: the records after it are then not looked at. */
const BEFORE = `at < $ AND
  id <= coalesce((SELECT id FROM activity WHERE at < $ ORDER BY at DESC LIMIT 1), 0)`;
const DETAIL = {
  clientId: "(details ->> 'client_id')",
  lastFour: "(details ->> 'last_four')",
  importId: "(details ->> 'import_id')",
};
