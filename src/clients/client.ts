/** A registered OAuth client, as the rest of the service sees it. */
import { createHash } from 'node:crypto';

export type ClientKind = 'confidential' | 'public' | 'machine' | 'resource-server';

/** A secret, which is valid unless it leaked. Its value was shown once and cannot be recovered from the hash. */
export interface ClientSecret {
  readonly id: string;
  readonly hash: string;
  readonly lastFour: string;
  readonly createdAt: Date;
  /** May be outdated in a cached client: using a secret does not invalidate the cache. */
  readonly lastUsedAt?: Date;
  /** When the secret was reported as found in public. */
  readonly leakedAt?: Date;
  /** When the grace period of the leaked secret ended. The secret stays refused. */
  readonly refusedAt?: Date;
}

export interface Client {
  readonly id: string;
  readonly kind: ClientKind;
  readonly name: string;
  /** Absent if the operator provides the client. */
  readonly ownerAccountId?: string;
  readonly ownerName?: string;
  /** When the current owner (or the operator) took over the client; absent if it still has its first owner. */
  readonly ownedSince?: Date;
  /** In the order chosen by the owner. Empty for machine clients and resource servers. */
  readonly redirectUris: readonly string[];
  /** A public client on the user's device (RFC 8252), with loopback ports or private schemes. */
  readonly isNative: boolean;
  readonly isSuspended: boolean;
  readonly suspendedAt?: Date;
  readonly links: ClientLinks;
  /** True if users approve each request of the client, even if they have approved the client before. */
  readonly alwaysAsks: boolean;
  /** True if the operator set `alwaysAsks`, so that the owner cannot undo it. */
  readonly asksForOperator: boolean;
  /** True if the operator has checked the client since its last change. */
  readonly isVerified: boolean;
  /** When the operator verified the client; absent if it is not verified. */
  readonly verifiedAt?: Date;
  /** The operator who verified the client. */
  readonly verifiedBy?: string;
  readonly createdAt: Date;
  /** Accurate to a few minutes when the client was read from the database; absent if never used. */
  readonly lastUsedAt?: Date;
  /** What was issued under an earlier generation is invalid, except refresh tokens: see `endedThrough`. */
  readonly generation: number;
  /** Authorizations of an earlier generation have ended. */
  readonly endedThrough: number;
  /** Present until each connection that `endedThrough` ended is also marked as ended in its own row. */
  readonly endingSince?: Date;
  /** When the client was last renewed; absent if it never was. */
  readonly renewedAt?: Date;
  /** Ids of secrets that leaked, even of deleted ones: machine access tokens that were got with them are invalid. */
  readonly leakedSecrets: readonly string[];
  /** Keys of the unexpired machine access tokens that were revoked singly; undefined if there are too many to cache. */
  readonly endedTokens: readonly string[] | undefined;
  /** In CIDR notation: secrets are accepted only from these networks. If empty, secrets are accepted from anywhere. */
  readonly allowedNetworks: readonly string[];
  /** True if the owner wants a mail when a secret is used from a new network. */
  readonly mailsNetworks: boolean;
  /** Oldest first; empty for public clients. */
  readonly secrets: readonly ClientSecret[];
  /** Changes with every change of the client or its secrets: a cache key for derived values. */
  readonly version: string;
}

/** True for kinds of clients that have redirect URIs, because users are sent back to them. */
export const redirectsPeople = (kind: ClientKind): boolean => kind === 'confidential' || kind === 'public';

/** True if clients of this kind authenticate (RFC 6749 §2.1). */
export const hasSecret = (kind: ClientKind): boolean => kind !== 'public';

/**
 * Returns the distinct targets to which the browser may be redirected, sorted: hosts with their ports, and private-use
 * schemes (which have no host). A change of this list requires a new approval.
 */
export function redirectHosts(client: Pick<Client, 'redirectUris'>): string[] {
  const hosts = client.redirectUris.map((uri) => {
    const { protocol, host } = new URL(uri);
    return protocol === 'https:' || protocol === 'http:' ? host : protocol;
  });
  return [...new Set(hosts)].sort();
}

/** Returns a hash of the client's values. If a change is undone, the client has its earlier version again. */
export function clientVersion(client: Omit<Client, 'version'>): string {
  const { id, kind, name, ownerAccountId, ownerName, redirectUris, isNative, isSuspended } = client;
  const secrets = client.secrets.map((secret) => [secret.id, secret.hash]);
  const values = [
    id,
    kind,
    name,
    ownerAccountId,
    ownerName,
    redirectUris,
    isNative,
    isSuspended,
    secrets,
    client.generation,
    client.links,
    client.isVerified,
    client.ownedSince,
    client.alwaysAsks,
  ];
  return createHash('sha256').update(JSON.stringify(values)).digest('base64url');
}

/** Links that the owner adds, in display order. They are shown as the owner's; Gatehouse never opens them. */
export const LINKS = ['homepage', 'support', 'privacy'] as const;

export type LinkKind = (typeof LINKS)[number];

/** Absolute `https:` URLs. Absent members were not set by the owner. */
export type ClientLinks = { readonly [Kind in LinkKind]?: string };

/** Returns the links as they are stored: trimmed, and without empty ones. */
export const normalizeLinks = (
  entered: {
    readonly [Kind in LinkKind]?: string | undefined;
  },
): ClientLinks =>
  Object.fromEntries(LINKS.map((kind) => [kind, entered[kind]?.trim()]).filter(([, url]) => url)) as ClientLinks;

export const isSameLinks = (a: ClientLinks, b: ClientLinks): boolean => LINKS.every((kind) => a[kind] === b[kind]);
