/** A registered OAuth client, as the rest of the service sees it. */
import { createHash } from 'node:crypto';

export type ClientKind = 'confidential' | 'public' | 'machine' | 'resource-server';

/** A valid secret. Its value was shown once and cannot be recovered from the hash. */
export interface ClientSecret {
  readonly id: string;
  readonly hash: string;
  readonly lastFour: string;
  readonly createdAt: Date;
  /** May be outdated in a cached client: using a secret does not invalidate the cache. */
  readonly lastUsedAt?: Date;
}

export interface Client {
  readonly id: string;
  readonly kind: ClientKind;
  readonly name: string;
  /** Absent if the operator provides the client. */
  readonly ownerAccountId?: string;
  readonly ownerName?: string;
  /** In the order that the owner chose. Empty for machine clients and resource servers. */
  readonly redirectUris: readonly string[];
  /** A public client on the user's device (RFC 8252), with loopback ports or private schemes. */
  readonly isNative: boolean;
  readonly isSuspended: boolean;
  readonly suspendedAt?: Date;
  readonly links: ClientLinks;
  /** The operator has checked the client in its present form. */
  readonly isVerified: boolean;
  readonly createdAt: Date;
  /** Accurate to a few minutes when the client was read from the database; absent if never used. */
  readonly lastUsedAt?: Date;
  /** Machine access tokens that were issued under an earlier generation are invalid. */
  readonly tokenGeneration: number;
  /** Oldest first; empty for public clients. */
  readonly secrets: readonly ClientSecret[];
  /** Changes with every change of the client or its secrets: a cache key for derived values. */
  readonly version: string;
}

/** True if users are sent back to clients of this kind, so that they have redirect URIs. */
export const redirectsPeople = (kind: ClientKind): boolean =>
  kind === 'confidential' || kind === 'public';

/** True if clients of this kind authenticate (RFC 6749 §2.1). */
export const hasSecret = (kind: ClientKind): boolean => kind !== 'public';

/**
 * Returns where the browser may be sent: the distinct hosts with their ports, sorted; for a
 * private-use scheme, the scheme. A change of this set requires new consent.
 */
export function redirectHosts(client: Pick<Client, 'redirectUris'>): string[] {
  const hosts = client.redirectUris.map((uri) => {
    const { protocol, host } = new URL(uri);
    return protocol === 'https:' || protocol === 'http:' ? host : protocol;
  });
  return [...new Set(hosts)].sort();
}

/** Returns a hash of these values: a change that is undone brings the old version back. */
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
    client.tokenGeneration,
    client.links,
    client.isVerified,
  ];
  return createHash('sha256').update(JSON.stringify(values)).digest('base64url');
}

/** Links that the owner adds, in display order: shown as the owner's, never opened by Gatehouse. */
export const LINKS = ['homepage', 'support', 'privacy'] as const;

export type LinkKind = (typeof LINKS)[number];

/** Absolute `https:` URLs; each is absent if the owner named none. */
export type ClientLinks = { readonly [Kind in LinkKind]?: string };

/** Returns the links as they are stored: trimmed, without empty ones. */
export const normalizeLinks = (
  entered: {
    readonly [Kind in LinkKind]?: string | undefined;
  },
): ClientLinks =>
  Object.fromEntries(
    LINKS.map((kind) => [kind, entered[kind]?.trim()]).filter(([, url]) => url),
  ) as ClientLinks;

export const isSameLinks = (a: ClientLinks, b: ClientLinks): boolean =>
  LINKS.every((kind) => a[kind] === b[kind]);
