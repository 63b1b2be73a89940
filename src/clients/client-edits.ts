/** Changes the name, the links and the redirect URIs of a client. */
import type { Clock } from '../base/clock.ts';
import { isClientId } from '../base/random-id.ts';
import { Refusal } from '../base/refusal.ts';
import type { InTransaction } from '../storage/queries.ts';
import type { Client } from './client.ts';
import { type ClientChecks, refuseTakenName } from './client-creation.ts';
import { type ClientDraft, type Naming, normalizeClientName, refuseInvalidClient } from './client-rules.ts';
import { type ChangeClient, unknownClient } from './client-secrets.ts';

/** Without `links`, the client's links stay unchanged. */
export type ClientChanges = Pick<ClientDraft, 'name' | 'redirectUris' | 'links'>;

interface EditOptions {
  readonly naming?: Naming;
  readonly from?: Pick<Client, 'name' | 'redirectUris'>;
}

/** Returns the scheme, host and port of each redirect URI. */
const targetsOf = (uris: readonly string[]): string[] =>
  uris.map((uri) => {
    const { protocol, host } = new URL(uri);
    return `${protocol}//${host}`;
  });

const EDIT = `
  WITH former AS (SELECT redirect_uris AS former_uris FROM clients WHERE id = $1 FOR NO KEY UPDATE)
  UPDATE clients SET updated_at = $2,
      name = coalesce($3::text, name), redirect_uris = coalesce($4::text[], redirect_uris),
      homepage_url = CASE WHEN $8 THEN $5 ELSE homepage_url END,
      support_url = CASE WHEN $8 THEN $6 ELSE support_url END,
      privacy_url = CASE WHEN $8 THEN $7 ELSE privacy_url END,
      verified_at = CASE
        WHEN name = coalesce($3, name) AND redirect_uris = coalesce($4, redirect_uris)
          AND (NOT $8::boolean OR (homepage_url, support_url, privacy_url)
            IS NOT DISTINCT FROM ($5::text, $6::text, $7::text))
        THEN verified_at END
    FROM former WHERE id = $1 AND ($9::text IS NULL OR (name = $9 AND redirect_uris = $10::text[]))
    RETURNING owner_account_id AS "ownerAccountId", redirect_uris AS "redirectUris",
      former_uris AS "formerRedirectUris"`;

export const createClientEdits = ({
  changing,
  clock,
  checks,
  read,
  readChanged,
}: {
  readonly changing: ChangeClient;
  readonly clock: Clock;
  readonly checks?: ClientChecks | undefined;
  readonly read: (id: string) => Promise<Client | undefined>;
  readonly readChanged: (id: string) => Promise<Client>;
}) => ({
  /**
   * Changes the name, the redirect URIs and the links of a client. If a value really changes, the client is no longer
   * verified, because the operator checked the former values.
   *
   * @param changes omitted properties stay unchanged
   * @param options `naming`: who is responsible for a new name, by default the owner. `from`: the values that the
   *   user saw before deciding on the changes
   * @throws Refusal `client_invalid` (with every problem), `client_unknown`, or `client_changed` if the client's name
   *   or redirect URIs are no longer those of `from`
   */
  async edit(
    id: string,
    changes: Partial<ClientChanges>,
    inTransaction?: InTransaction,
    { naming = 'by its owner', from }: EditOptions = {},
  ): Promise<Client> {
    const { links } = changes;
    const client = isClientId(id) ? await read(id) : undefined;
    if (!client) throw unknownClient(id);
    const { homepage, support, privacy } = links ?? {};
    const { name: typed = client.name, redirectUris: uris = client.redirectUris } = changes;
    const name = normalizeClientName(typed);
    const draft = { ...client, name: typed, redirectUris: uris, links: links ?? {} };
    const named = { ...draft, naming: name === client.name ? ('as before' as const) : naming };
    // Check only here, outside the transaction: the rules depend on the client's kind, which never changes.
    refuseInvalidClient(draft, named.naming);
    const values = [
      changes.name === undefined ? undefined : name,
      changes.redirectUris,
      homepage,
      support,
      privacy,
      links !== undefined,
      from?.name,
      from?.redirectUris,
    ].map((value) => value ?? null);
    await changing(id, async (tx) => {
      const [changed] = await tx.query<{
        readonly ownerAccountId: string | null;
        readonly redirectUris: readonly string[];
        readonly formerRedirectUris: readonly string[];
      }>(EDIT, [id, new Date(clock()), ...values]);
      if (!changed) throw from ? changedMeanwhile() : unknownClient(id);
      const { ownerAccountId, redirectUris, formerRedirectUris } = changed;
      const former = targetsOf(formerRedirectUris);
      // Organizations have approved the client only for its former hosts.
      if (targetsOf(redirectUris).some((target) => !former.includes(target))) await checks?.withdrawApprovals(tx, id);
      if (ownerAccountId !== null) {
        await checks?.followClientBlocks(tx, { id, ownerAccountId, redirectUris, formerRedirectUris });
      }
      await refuseTakenName(tx, checks, named);
      await inTransaction?.(tx);
    });
    return readChanged(id);
  },
});

/** The refusal of a decision that was made on a page with outdated values of the client. */
export const changedMeanwhile = (): Refusal =>
  new Refusal(
    'client_changed',
    'The client was changed in the meantime.',
    'Check the present settings of the client, and send the changes again.',
  );
