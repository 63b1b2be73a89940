/** How a client is read from its tables, with its owner's name and its secrets, in one query. */
import { type Client, type ClientKind, clientVersion } from './client.ts';
import { normalizeLinks } from './client-links.ts';

/** To be completed by `WHERE`, `ORDER BY` on `c`. */
export const SELECT_CLIENTS = `
  SELECT c.id, c.kind, c.name, c.owner_account_id, a.name AS owner_name, c.redirect_uris,
    c.native, c.suspended_at, c.created_at, c.last_used_at, c.token_generation,
    c.homepage_url, c.support_url, c.privacy_url, c.verified_at,
    (SELECT coalesce(json_agg(s ORDER BY s.created_at, s.id), '[]')
      FROM client_secrets s WHERE s.client_id = c.id) AS secrets
  FROM clients c LEFT JOIN accounts a ON a.id = c.owner_account_id`;

export interface ClientRow {
  readonly id: string;
  readonly kind: ClientKind;
  readonly name: string;
  readonly owner_account_id: string | null;
  readonly owner_name: string | null;
  readonly redirect_uris: string[];
  readonly native: boolean;
  readonly suspended_at: Date | null;
  readonly created_at: Date;
  readonly last_used_at: Date | null;
  readonly token_generation: number;
  readonly homepage_url: string | null;
  readonly support_url: string | null;
  readonly privacy_url: string | null;
  readonly verified_at: Date | null;
  /** From JSON, so its times are text. */
  readonly secrets: readonly {
    readonly id: string;
    readonly secret_hash: string;
    readonly last_four: string;
    readonly created_at: string;
    readonly last_used_at: string | null;
  }[];
}

export function clientFrom(row: ClientRow): Client {
  const client = {
    id: row.id,
    kind: row.kind,
    name: row.name,
    ...(row.owner_account_id !== null && { ownerAccountId: row.owner_account_id }),
    ...(row.owner_name !== null && { ownerName: row.owner_name }),
    redirectUris: row.redirect_uris,
    isNative: row.native,
    isSuspended: row.suspended_at !== null,
    createdAt: row.created_at,
    ...(row.last_used_at !== null && { lastUsedAt: row.last_used_at }),
    tokenGeneration: row.token_generation,
    links: normalizeLinks({
      homepage: row.homepage_url ?? '',
      support: row.support_url ?? '',
      privacy: row.privacy_url ?? '',
    }),
    isVerified: row.verified_at !== null,
    secrets: row.secrets.map((secret) => ({
      id: secret.id,
      hash: secret.secret_hash,
      lastFour: secret.last_four,
      createdAt: new Date(secret.created_at),
      ...(secret.last_used_at !== null && { lastUsedAt: new Date(secret.last_used_at) }),
    })),
  };
  return { ...client, version: clientVersion(client) };
}
