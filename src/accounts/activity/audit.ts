/** The activity of all users, for operators: searched by user, subject and time. */
import type { Queries } from '../../storage/queries.ts';
import { type ActivityRecord, type ActivityRow, activityFrom, findActivity } from './activity.ts';
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

/** Maximum number of entries with one action that are grouped. */
const MAX_GROUPED = 5_000;

export function createAudit({ database }: { readonly database: Queries }) {
  /** Returns the newest records first. */
  async function find(question: AuditQuestion): Promise<AuditRecord[]> {
    const { accountId, clientId, action, actor, lastFour, requestId, importId } = question;
    const { since, until, before, limit } = question;
    const isFrequent = COMMON_ACTIONS.includes(action);
    const isPerson = actor === 'person';
    const rows = await findActivity<AuditRow>(database, {
      indexed: [
        ['request_id', requestId],
        [DETAIL.importId, importId],
        ['account_id', accountId],
        [DETAIL.clientId, clientId],
        ['action', isFrequent ? undefined : action],
        ['actor', isPerson ? undefined : actor],
      ],
      filters: [
        ['action = $', isFrequent ? action : undefined],
        ['actor = $', isPerson ? actor : undefined],
        [`${DETAIL.lastFour} = $`, lastFour],
        ['at >= $', since],
      ],
      within: [
        [SINCE, since],
        [BEFORE, until],
      ],
      before,
      limit,
      more: `, ${EMAIL}`,
    });
    return rows.map(auditRecordFrom);
  }

  return {
    find,

    /**
     * Returns sign-ins refused after `since`, grouped by account and cause, latest first. Groups the
     * latest `MAX_GROUPED` entries of each action.
     */
    async refusedSignIns(since: Date, ofAccount?: string): Promise<RefusedSignIns[]> {
      const groups = new Map<string, RefusedSignIns>();
      for (const action of REFUSED_SIGN_INS) {
        const question = { action, since, accountId: ofAccount, limit: MAX_GROUPED };
        for (const { id, at, accountId, email, details: all } of await find(question)) {
          if (accountId === undefined || email === undefined) continue;
          const { count: entries = 1, ...details } = all;
          const key = JSON.stringify([accountId, action, details]);
          const { id: latest = String(id), last = at, count = 0 } = groups.get(key) ?? {};
          const sum = count + Number(entries);
          const group = { id: latest, accountId, email, action, details, first: at, last };
          groups.set(key, { ...group, count: sum });
        }
      }
      return [...groups.values()].sort((a, b) => Number(b.id) - Number(a.id));
    },
  };
}

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
/** Ids far below the first one since then are older, also by the clock of another node. */
const SINCE =
  'id > coalesce((SELECT id FROM activity WHERE at < $ ORDER BY at DESC LIMIT 1), 0) - 1000';
/** The index of actions has all others. */
const COMMON_ACTIONS: readonly (Action | undefined)[] = [
  ...(['signed_in', 'connected', 'disconnected', 'tokens_revoked'] as const),
];
const DETAIL = {
  clientId: "(details ->> 'client_id')",
  lastFour: "(details ->> 'last_four')",
  importId: "(details ->> 'import_id')",
};
