/** What is recorded of the accounts that an import adds and changes. */
import type { Identity } from '../identities/identities.ts';
import type { ImportActivity } from './change.ts';
import { recordOfLink } from './identities.ts';

interface Added {
  readonly id: string;
  readonly external_id: string;
  readonly suspended?: boolean | undefined;
  readonly identity?: Identity | undefined;
}

interface Changed extends Omit<Added, 'suspended'> {
  readonly suspension: 'begin' | 'end' | 'keep';
  /** The names of its fields. */
  readonly changed: readonly string[];
}

export function recordsOfAdded({
  id: accountId,
  external_id,
  suspended = false,
  identity,
}: Added): ImportActivity[] {
  const about = { accountId, details: { external_id } };
  const suspension = suspended ? [{ action: 'account_suspended', ...about } as const] : [];
  return [
    { action: 'account_added', ...about },
    ...suspension,
    ...recordOfLink(accountId, identity),
  ];
}

export function recordsOfChanged({
  id: accountId,
  external_id,
  suspension,
  identity,
  changed,
}: Changed): ImportActivity[] {
  const about = { accountId, details: { external_id } };
  const fields = changed.filter((field) => field !== 'suspended' && field !== 'identity');
  const records: ImportActivity[] = [];
  if (fields.length > 0) {
    const details = { ...about.details, changed: fields };
    records.push({ action: 'account_changed', accountId, details });
  }
  if (suspension === 'begin') records.push({ action: 'account_suspended', ...about });
  if (suspension === 'end') records.push({ action: 'account_resumed', ...about });
  records.push(...recordOfLink(accountId, identity));
  return records;
}
