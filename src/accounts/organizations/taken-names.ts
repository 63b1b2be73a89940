/** Finds names of clients that users could confuse with the name of another company or client. */
import type { Queries } from '../../storage/queries.ts';
import { holdsReserved, lookOf, reservedWords, variantTest } from '../../texts/name-rules.ts';
import type { OwnText } from '../../texts/texts.ts';

/** @param brandName returns the name of the service, which a reload can change */
export function createTakenNames(issuer: string, brandName: () => OwnText) {
  return {
    /**
     * True if the name looks like that of the service, of an organization, or of a verified client. Exceptions: owners
     * and admins may use the name of their organization, and a client's owner the name of the client. Generic words
     * around the name of a verified client make no difference. Makes the same query for every name.
     *
     * @param tx the transaction that creates or changes the client
     * @param ownerAccountId absent if the operator provides the client
     */
    async isTaken(tx: Queries, name: string, ownerAccountId: string | undefined): Promise<boolean> {
      const look = lookOf(name);
      const isVariant = variantTest(name);
      const brand = brandName();
      const brandNames = typeof brand === 'string' ? [brand] : Object.values(brand);
      // Each row is a verified client, or an organization whose name looks like `name`.
      const found = await tx.query<{ clientName: string | null }>(
        `(SELECT NULL AS "clientName" FROM organizations o WHERE o.name_key = $1 AND NOT EXISTS (
            SELECT FROM organization_memberships m WHERE m.organization_id = o.id
              AND m.account_id = $2 AND m.role IN ('owner', 'admin')) LIMIT 1)
          UNION ALL
          (SELECT c.name FROM clients c WHERE c.verified_at IS NOT NULL AND c.owner_account_id IS DISTINCT FROM $2)`,
        [look, ownerAccountId ?? null],
      );
      const looks = found.map(({ clientName }) => clientName && lookOf(clientName));
      return (
        holdsReserved(name, reservedWords(issuer, brandNames)) ||
        looks.some((other) => other === null || other === look || isVariant(other))
      );
    },
  };
}
