/** A registered OAuth client, as the rest of the service sees it. */
import { createHash } from 'node:crypto';

export type ClientKind = 'confidential' | 'public' | 'machine' | 'resource-server';

/** A secret, which is valid unless it leaked. Its value was shown once and cannot be recovered from the hash. */
export interface ClientSecret {
  readonly id: string;
  readonly hash: string;
  readonly lastFour: string;
  readonly createdAt: Date;
  /** May be outdated in a cached client, because using a secret does not invalidate the cache. */
  readonly lastUsedAt?: Date;
  /** When the secret was reported as found in public. */
  readonly leakedAt?: Date;
  /** When the grace period of the leaked secret ended. The secret stays refused, even if the period is prolonged. */
  readonly refusedAt?: Date;
}

export interface Client {
  readonly id: string;
  readonly kind: ClientKind;
  readonly name: string;
  /** Absent if the operator provides the client. */
  readonly ownerAccountId?: string;
  readonly ownerName?: string;
  /** When the current owner (or the operator) took over the client; absent if the first owner still has it. */
  readonly ownedSince?: Date;
  /** The redirect URIs, in the order chosen by the owner. Empty for machine clients and resource servers. */
  readonly redirectUris: readonly string[];
  /** True for a public client on the user's device (RFC 8252), which may use loopback ports or private schemes. */
  readonly isNative: boolean;
  readonly isSuspended: boolean;
  readonly suspendedAt?: Date;
  readonly links: ClientLinks;
  readonly alwaysAsks: boolean;
  /** True if the operator set `alwaysAsks`, so that the owner cannot undo it. */
  readonly asksForOperator: boolean;
  /** True if the operator has checked the client since its last change. */
  readonly isVerified: boolean;
  readonly verifiedAt?: Date;
  readonly createdAt: Date;
  /** Absent if never used. When read from the database, accurate to a few minutes; a cached value may be older. */
  readonly lastUsedAt?: Date;
  /** Tokens and codes of an earlier generation are invalid, except refresh tokens, which only `endedThrough` ends. */
  readonly generation: number;
  /** Authorizations of an earlier generation have ended, and their refresh tokens too. */
  readonly endedThrough: number;
  /** Present after `endedThrough` was raised, until the rows of all ended connections are marked as ended. */
  readonly endingSince?: Date;
  readonly renewedAt?: Date;
  /** Ids of leaked secrets, even if deleted: machine access tokens that were issued for these secrets are invalid. */
  readonly leakedSecrets: readonly string[];
  /** Keys of unexpired machine access tokens that were themselves revoked; undefined if too many to cache. */
  readonly endedTokens: readonly string[] | undefined;
  /** Oldest first; empty for public clients. */
  readonly secrets: readonly ClientSecret[];
  /** A cache key for derived values. It changes with every change of the client or its secrets. */
  readonly version: string;
}

export const redirectsPeople = (kind: ClientKind): boolean => kind === 'confidential' || kind === 'public';

/** True if clients of this kind authenticate (RFC 6749 §2.1). */
export const hasSecret = (kind: ClientKind): boolean => kind !== 'public';

/**
 * Returns the distinct targets to which the browser may be redirected, sorted: hosts with their ports, and private-use
 * schemes (which have no host). If this list changes, a new approval is required.
 */
export function redirectHosts(client: Pick<Client, 'redirectUris'>): string[] {
  const hosts = client.redirectUris.map((uri) => {
    const { protocol, host } = new URL(uri);
    return protocol === 'https:' || protocol === 'http:' ? host : protocol;
  });
  return [...new Set(hosts)].sort();
}

/** Returns a hash of the client's values. A client whose change is undone therefore has its earlier version again. */
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

/** Links that the owner adds, in display order. Pages show them as the owner's links; Gatehouse never opens them. */
export const LINKS = ['homepage', 'support', 'privacy'] as const;

export type LinkKind = (typeof LINKS)[number];

/** Absolute `https:` URLs. */
export type ClientLinks = { readonly [Kind in LinkKind]?: string };

/** Returns the links as they are stored: trimmed, without empty links. */
export const normalizeLinks = (
  entered: {
    readonly [Kind in LinkKind]?: string | undefined;
  },
): ClientLinks =>
  Object.fromEntries(LINKS.map((kind) => [kind, entered[kind]?.trim()]).filter(([, url]) => url)) as ClientLinks;

export const isSameLinks = (a: ClientLinks, b: ClientLinks): boolean => LINKS.every((kind) => a[kind] === b[kind]);
