/** A registered OAuth client, as the rest of the service sees it. */
import { createHash } from 'node:crypto';

export type ClientKind = 'confidential' | 'public' | 'machine' | 'resource-server';

/** A live secret. Its value was shown once; what is kept here does not give it back. */
export interface ClientSecret {
  readonly id: string;
  readonly hash: string;
  readonly lastFour: string;
  readonly createdAt: Date;
  /** As of when the client was read: using a secret does not make a remembered client stale. */
  readonly lastUsedAt?: Date;
}

export interface Client {
  readonly id: string;
  readonly kind: ClientKind;
  readonly name: string;
  /** Absent where the operator provides the client. */
  readonly ownerAccountId?: string;
  readonly ownerName?: string;
  /** In the owner's order. Empty for machine clients and resource servers. */
  readonly redirectUris: readonly string[];
  /** A public client on the person's own device (RFC 8252): loopback ports and private schemes. */
  readonly isNative: boolean;
  readonly isSuspended: boolean;
  readonly suspendedAt?: Date;
  readonly links: ClientLinks;
  /** The operator looked at it as it is. */
  readonly isVerified: boolean;
  readonly createdAt: Date;
  /** As of when the client was read, and to a few minutes; absent when it never did anything. */
  readonly lastUsedAt?: Date;
  /** A machine access token issued under an earlier generation is dead. */
  readonly tokenGeneration: number;
  /** Oldest first; none for public clients. */
  readonly secrets: readonly ClientSecret[];
  /** Another one after every change of the client or its secrets: a key for what is derived of it. */
  readonly version: string;
}

/** Whether people are sent back to this client, so that it has redirect URIs. */
export const redirectsPeople = (kind: ClientKind): boolean =>
  kind === 'confidential' || kind === 'public';

/** Whether this client proves who it is (RFC 6749 §2.1). */
export const hasSecret = (kind: ClientKind): boolean => kind !== 'public';

/**
 * Where the browser may be sent: the distinct hosts with their port, sorted; for a private-use
 * scheme the scheme. A person is asked again when this set changes.
 */
export function redirectHosts(client: Pick<Client, 'redirectUris'>): string[] {
  const hosts = client.redirectUris.map((uri) => {
    const { protocol, host } = new URL(uri);
    return protocol === 'https:' || protocol === 'http:' ? host : protocol;
  });
  return [...new Set(hosts)].sort();
}

/** The version of these values. Equal values are the same version, whatever lies between. */
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

/** Pages about a client that its owner names: shown as theirs, and never looked at by this service. */
/** Their kinds, in the order in which they are shown. */
export const LINKS = ['homepage', 'support', 'privacy'] as const;

export type LinkKind = (typeof LINKS)[number];

/** Absolute `https:` URLs, each absent where none is named. */
export type ClientLinks = { readonly [Kind in LinkKind]?: string };

/** As they are kept: what was left empty is absent. */
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
