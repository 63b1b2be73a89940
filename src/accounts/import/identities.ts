/** The links of an import with accounts elsewhere: made, and never moved. */
import type { Queries } from '../../storage/queries.ts';
import type { Identity } from '../identities/identities.ts';
import type { ImportActivity } from './change.ts';

/** Whoever signs in with it would be somebody else from then on: that is done by hand. */
export function movingLink(
  identity: Identity | undefined,
  found: { readonly id: string } | undefined,
  { linked, subject }: { readonly linked: string | null; readonly subject: string | null },
): string | undefined {
  if (identity === undefined) return undefined;
  if (linked !== null && linked !== found?.id) {
    return `identity: the account ${linked} is linked with it; \`accounts unlink\` takes that away`;
  }
  if (found && subject !== null && subject !== identity.subject) {
    return (
      `identity: the account ${found.id} is linked with the subject ${JSON.stringify(subject)} of ` +
      'this issuer; `accounts unlink` takes that away'
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
    [
      linked.map(({ id }) => id),
      linked.map(({ issuer }) => issuer),
      linked.map(({ subject }) => subject),
      now,
    ],
  );
}

export const recordOfLink = (
  accountId: string,
  identity: Identity | undefined,
): ImportActivity[] =>
  identity === undefined
    ? []
    : [
        {
          action: 'identity_linked',
          accountId,
          details: { provider: identity.issuer, provider_name: identity.issuer, ...identity },
        },
      ];
