/** Finds names of clients that users could mistake for someone else's. */
import type { Queries } from '../../storage/queries.ts';
import { holdsReserved, lookOf, reservedWords, variantTest } from '../../texts/name-rules.ts';
import type { OwnText } from '../../texts/texts.ts';

export type TakenNames = ReturnType<typeof createTakenNames>;

interface Candidate {
  /** Null for a client. */
  readonly organizationId: string | null;
  readonly name: string;
  /** The stored result of `lookOf` for the name; null if not computed yet. */
  readonly key: string | null;
}

/** Maximum number of organizations without a key whose names are compared at once. */
const BATCH = 1_000;

/** @param brandName returns the name of the service, which a reload can change. */
export function createTakenNames(issuer: string, brandName: () => OwnText) {
  return {
    /**
     * True if the name looks like that of the service, of an organization or of a client that the
     * operator verified. Owners and admins may use the name of their organization, and owners of a
     * verified client its name. The name of a verified client is also taken with generic words around
     * it. Makes the same queries, whatever the result is.
     *
     * @param tx the transaction that creates or changes the client.
     * @param ownerAccountId absent if the operator provides the client.
     */
    async isTaken(tx: Queries, name: string, ownerAccountId: string | undefined): Promise<boolean> {
      const look = lookOf(name);
      const isVariant = variantTest(name);
      const brand = brandName();
      const brandNames = typeof brand === 'string' ? [brand] : Object.values(brand);
      let isTaken = holdsReserved(name, reservedWords(issuer, brandNames));
      let after: string | undefined = '';
      while (after !== undefined) {
        const found = await candidates(tx, look, { ownerAccountId, after });
        isTaken ||= found.some(({ organizationId, name: other, key }) => {
          const otherLook = key ?? lookOf(other);
          return otherLook === look || (organizationId === null && isVariant(otherLook));
        });
        const missing = found.filter(({ organizationId, key }) => organizationId && key === null);
        if (missing.length > 0) await keepKeys(tx, missing);
        // After an import there may be more than one batch.
        after = missing.length === BATCH ? (missing.at(-1)?.organizationId ?? undefined) : undefined;
      }
      return isTaken;
    },
  };
}

function candidates(
  tx: Queries,
  look: string,
  { ownerAccountId, after }: { ownerAccountId: string | undefined; after: string },
): Promise<Candidate[]> {
  const own = `SELECT FROM organization_memberships m WHERE m.organization_id = k.organization_id
    AND m.account_id = $2 AND m.role IN ('owner', 'admin')`;
  return tx.query<Candidate>(
    `(SELECT k.organization_id AS "organizationId", k.name, k.key FROM organization_name_keys k
        WHERE k.key = $1 AND NOT EXISTS (${own}))
      UNION ALL
      (SELECT k.organization_id, k.name, k.key FROM organization_name_keys k
        WHERE k.key IS NULL AND k.organization_id > $3 AND NOT EXISTS (${own})
        ORDER BY k.organization_id LIMIT ${BATCH})
      UNION ALL
      (SELECT NULL, c.name, NULL FROM clients c
        WHERE c.verified_at IS NOT NULL AND c.owner_account_id IS DISTINCT FROM $2)`,
    [look, ownerAccountId ?? null, after],
  );
}

/** Stores the keys. Skips organizations that were just renamed or that another check has locked. */
async function keepKeys(tx: Queries, missing: readonly Candidate[]): Promise<void> {
  await tx.query(
    `WITH free AS (
        SELECT organization_id AS id FROM organization_name_keys
          WHERE organization_id = ANY($1) FOR UPDATE SKIP LOCKED
      )
      UPDATE organization_name_keys k SET key = computed.key
        FROM unnest($1::text[], $2::text[], $3::text[]) AS computed (id, name, key) JOIN free USING (id)
        WHERE k.organization_id = computed.id AND k.name = computed.name`,
    [
      missing.map(({ organizationId }) => organizationId),
      missing.map(({ name }) => name),
      missing.map(({ name }) => lookOf(name)),
    ],
  );
}
