/** Identities linked to imported accounts, and the activity that importing accounts records. */
import type { Identity } from '../accounts/identities/identities.ts';
import type { Queries } from '../storage/queries.ts';
import { columnsOf, type ImportActivity } from './change.ts';

interface Added {
  readonly id: string;
  readonly external_id: string | null;
  readonly suspended?: boolean | undefined;
  readonly identity?: Identity | undefined;
}

interface Changed extends Omit<Added, 'suspended'> {
  readonly suspension: 'begin' | 'end' | 'keep';
  /** Names of the changed fields. */
  readonly changed: readonly string[];
}

export function recordsOfAdded({ id: accountId, external_id, suspended = false, identity }: Added): ImportActivity[] {
  const about = { accountId, details: { ...(external_id !== null && { external_id }) } };
  const suspension = suspended ? [{ action: 'account_suspended', ...about } as const] : [];
  return [{ action: 'account_added', ...about }, ...suspension, ...recordOfLink(accountId, identity)];
}

export function recordsOfChanged({
  id: accountId,
  external_id,
  suspension,
  identity,
  changed,
}: Changed): ImportActivity[] {
  const about = { accountId, details: { ...(external_id !== null && { external_id }) } };
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

/** Relinking would sign an identity's owner in to another account: that is only done by hand. */
export function linkFault(
  identity: Identity | undefined,
  found: { readonly id: string } | undefined,
  { linked, subject }: { readonly linked: string | null; readonly subject: string | null },
): string | undefined {
  if (identity === undefined) return undefined;
  if (linked !== null && linked !== found?.id) {
    return (
      `identity: the account ${linked} is already linked with this identity; ` + '`links remove` removes that link'
    );
  }
  if (found && subject !== null && subject !== identity.subject) {
    return (
      `identity: the account ${found.id} is linked with the subject ` +
      `${JSON.stringify(subject)} of this issuer; \`links remove\` removes that link`
    );
  }
  return undefined;
}

export async function linkAccounts(
  tx: Queries,
  lines: readonly { readonly id: string; readonly identity?: Identity | undefined }[],
  now: Date,
): Promise<void> {
  const linked = lines.flatMap(({ id, identity }) => (identity ? [{ id, ...identity }] : []));
  if (linked.length === 0) return;
  await tx.query(
    `INSERT INTO account_identities (account_id, issuer, subject, created_at)
      SELECT account_id, issuer, subject, $4
      FROM unnest($1::text[], $2::text[], $3::text[]) AS line (account_id, issuer, subject)`,
    [...columnsOf(linked, 'id', 'issuer', 'subject'), now],
  );
}

const recordOfLink = (accountId: string, identity: Identity | undefined): ImportActivity[] =>
  identity === undefined
    ? []
    : [
        {
          action: 'identity_linked',
          accountId,
          details: { provider: identity.issuer, provider_name: identity.issuer, ...identity },
        },
      ];
