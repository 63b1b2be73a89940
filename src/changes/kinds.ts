/** The five kinds of records: their tables, and how a change of each is compared and logged. */
import type { NewActivity } from '../accounts/activity/activity.ts';
import { emailKey } from '../accounts/email.ts';
import { lookOf } from '../texts/name-rules.ts';
import type { By, Change, ChangeType, Difference, Row } from './change.ts';

type Entry = Pick<NewActivity, 'action' | 'accountId' | 'details'>;

interface Kind {
  readonly table: string;
  readonly id: 'text' | 'bigint';
  /** The columns that a change may set. */
  readonly values: readonly string[];
  /** The columns that only a new row sets. */
  readonly fixed: readonly string[];
  /** SQL that joins a line `l` with its row `t`, and with other rows that `context` uses. */
  readonly find: string;
  /**
   * SQL for a JSON object. It contains names of organizations and warehouses for the log, and values for checking a
   * change, such as the account that has the new address.
   */
  readonly context: string;
  log(difference: Difference): Entry[];
}

/**
 * SQL that finds at most one row by an index. PostgreSQL does not know that it joins only a few rows: without OFFSET 0,
 * it would read whole tables.
 */
const one = (table: string, alias: string, where: string): string =>
  `LEFT JOIN LATERAL (SELECT * FROM ${table} x WHERE ${where} OFFSET 0) ${alias} ON true`;

/** Looks up the account and the client separately: with OR, PostgreSQL would use no index. */
const subject = (table: string, place: string): string =>
  one(
    table,
    't',
    `x.id = coalesce((SELECT id FROM ${table} m WHERE m.account_id = l.account_id AND m.${place} = l.${place}),
      (SELECT id FROM ${table} m WHERE m.client_id = l.client_id AND m.${place} = l.${place}))`,
  );

/**
 * SQL for the text of the `gatehouse` command that completes the deletion of an organization or a warehouse; null if
 * the deletion has not begun.
 */
const ending = (alias: string, noun: string): string =>
  `CASE WHEN ${alias}.ended_at IS NOT NULL THEN '${noun} delete ' || ${alias}.id END`;

export const KINDS: Readonly<Record<ChangeType, Kind>> = {
  organization: {
    table: 'organizations',
    id: 'text',
    values: ['external_id', 'name', 'name_key', 'asks_first', 'allows_api_keys'],
    fixed: ['id', 'created_at'],
    find: one('organizations', 't', 'x.id = l.id'),
    context: `jsonb_build_object('ending', ${ending('t', 'organizations')})`,
    log: (one) => [place('organization', one)],
  },
  warehouse: {
    table: 'warehouses',
    id: 'text',
    values: ['external_id', 'name', 'organization_id'],
    fixed: ['id', 'created_at'],
    find: `${one('warehouses', 't', 'x.id = l.id')} ${one('organizations', 'o', 'x.id = t.organization_id')}`,
    context: `jsonb_build_object('home', o.external_id,
      'ending', coalesce(${ending('o', 'organizations')}, ${ending('t', 'warehouses')}))`,
    log: (one) => [place('warehouse', one)],
  },
  account: {
    table: 'accounts',
    id: 'text',
    values: ['external_id', 'email', 'email_key', 'name', 'suspended_at', 'suspended_by_import'],
    fixed: ['id', 'created_at', 'password_hash'],
    find: [
      one('accounts', 't', 'x.id = l.id'),
      one('accounts', 'h', 'x.email_key = l.email_key'),
      one('account_identities', 'linked', 'x.issuer = l.issuer AND x.subject = l.subject'),
      one('account_identities', 'own', 'x.account_id = t.id AND x.issuer = l.issuer'),
    ].join(' '),
    context: `jsonb_build_object('holder', h.id, 'holder_external_id', h.external_id,
      'linked', linked.account_id, 'subject', own.subject)`,
    log: account,
  },
  membership: {
    table: 'organization_memberships',
    id: 'bigint',
    values: ['role'],
    fixed: ['account_id', 'client_id', 'organization_id', 'created_at'],
    find: `${subject('organization_memberships', 'organization_id')}
      ${one('organizations', 'o', 'x.id = l.organization_id')}`,
    context: "jsonb_build_object('organization_name', o.name)",
    log: (one) => [access(one, ['organization_id', 'organization_name', 'role'])],
  },
  warehouse_rights: {
    table: 'warehouse_rights',
    id: 'bigint',
    values: ['rights'],
    fixed: ['account_id', 'client_id', 'organization_id', 'warehouse_id'],
    find: `${subject('warehouse_rights', 'warehouse_id')}
      ${one('warehouses', 'w', 'x.id = l.warehouse_id')} ${one('organizations', 'o', 'x.id = w.organization_id')}`,
    context: `jsonb_build_object(
      'organization_id', o.id, 'organization_name', o.name, 'warehouse_name', w.name)`,
    log: (one) => [access(one, ['organization_id', 'organization_name', 'warehouse_id', 'warehouse_name', 'rights'])],
  },
};

function place(type: 'organization' | 'warehouse', { kind, after }: Difference): Entry {
  const { id, name, external_id, organization_id } = after;
  return {
    action: `${type}_${kind}`,
    details: {
      [`${type}_id`]: String(id),
      [`${type}_name`]: String(name),
      ...(external_id != null && { external_id: String(external_id) }),
      ...(organization_id != null && { organization_id: String(organization_id) }),
    },
  };
}

function access({ kind, after }: Difference, keys: readonly string[]): Entry {
  const { account_id, client_id } = after;
  const shown = kind === 'removed' ? keys.slice(0, -1) : keys;
  return {
    action: kind === 'removed' ? 'membership_removed' : 'membership_set',
    ...(account_id != null && { accountId: String(account_id) }),
    details: {
      ...(client_id != null && { client_id: String(client_id) }),
      ...Object.fromEntries(shown.map((key) => [key, after[key] as string])),
    },
  };
}

function account({ change, kind, fields, before, after }: Difference): Entry[] {
  const { id, external_id } = after;
  const accountId = String(id);
  const details = external_id == null ? {} : { external_id: String(external_id) };
  if (change.end === 'deleted') return [{ action: 'account_deleted', accountId, details }];
  const { suspended, identity, ...others } = fields;
  const changed = Object.keys(others);
  const entries: Entry[] = [];
  if (kind === 'added') entries.push({ action: 'account_added', accountId, details });
  if (before && changed.length > 0) {
    entries.push({ action: 'account_changed', accountId, details: { ...details, changed } });
  }
  if (suspended) {
    const action = suspended[1] === true ? 'account_suspended' : 'account_resumed';
    entries.push({ action, accountId, details });
  }
  if (identity && change.identity) {
    const { issuer } = change.identity;
    const link = { provider: issuer, provider_name: issuer, ...change.identity };
    entries.push({ action: 'identity_linked', accountId, details: link });
  }
  return entries;
}

/** Returns true if the change moves a warehouse to another organization. */
export const isMove = ({ change, before, fields }: Difference): boolean =>
  change.type === 'warehouse' && before !== null && fields.organization_id !== undefined;

export function rowAfter(change: Change, before: Row | null, by: By, now: Date): Row {
  const { type, set = {}, id, account_id, client_id, organization_id, warehouse_id } = change;
  const start = before ?? {
    ...given({ id, account_id, client_id, organization_id, warehouse_id }),
    ...(type === 'organization' && { asks_first: by.asksFirst === true, allows_api_keys: true }),
    ...(type === 'account' && { suspended_at: null, suspended_by_import: false }),
    external_id: null,
    created_at: now,
  };
  const { suspended, ...values } = set;
  if (type !== 'account') {
    const named = type === 'organization' && values.name !== undefined && { name_key: lookOf(values.name) };
    return { ...start, ...given(values), ...named };
  }
  return {
    ...start,
    ...given(values),
    ...(values.email !== undefined && { email_key: emailKey(values.email) }),
    ...suspension(start, change.end === 'suspended' ? true : suspended, by, now),
  };
}

const given = (values: object): Row =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined));

/**
 * Returns the new values of the suspension columns. If the person is already suspended, the earlier time stays. A line
 * of another system ends only a suspension that such a line began, unless the line has `suspended: false`.
 */
function suspension(before: Row, suspended: boolean | undefined, by: By, now: Date): Row {
  const { suspended_at: at = null, suspended_by_import: isOfSystem } = before;
  if (suspended === true) {
    const suspended_by_import = by.isSystem === true && (at === null || isOfSystem === true);
    return { suspended_at: at ?? now, suspended_by_import };
  }
  const ends = suspended === false || (by.isSystem === true && isOfSystem === true);
  return ends ? { suspended_at: null, suspended_by_import: false } : {};
}
