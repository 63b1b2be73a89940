/** Authorizations: one approval of one client by one user, until it ends. */
import type { People, Person } from '../accounts/access/people.ts';
import { type Clock, epochSeconds } from '../base/clock.ts';
import { randomId, sha256 } from '../base/random-id.ts';
import type { Client } from '../clients/client.ts';
import type { ClientRegistry } from '../clients/client-registry.ts';
import type { AuthorizationRecord, Issue, TokenStore } from '../storage/token-store.ts';
import { generationIn, hasGeneration } from './connections.ts';
import {
  createTokenFormats,
  type PresentedAccessToken,
  type PresentedValue,
  readValue,
  type ValueSource,
} from './token-formats.ts';

export interface Authorization extends AuthorizationRecord {
  /** Not secret: it grants nothing, and resource servers receive it. */
  readonly id: string;
}

/** What the user approved, and what the exchange of the code must repeat. */
interface Approval {
  readonly accountId: string;
  readonly clientId: string;
  /** The connection's generation; absent for a client test, which has no connection. */
  readonly generation?: number;
  readonly redirectUri: string;
  /** RFC 7636 §4.2, method S256. */
  readonly codeChallenge?: string;
}

/** A genuine value and the authorization it belongs to. */
export interface Found<Value extends PresentedValue = PresentedValue> {
  readonly value: Value;
  readonly authorization: Authorization;
}

/** The two sides of an active authorization. */
interface Holders extends Pick<Person, 'account' | 'organizations'> {
  readonly client: Client;
}

/** Its connection was ended, or its client or account is suspended or deleted. */
export type NotCounted = 'ended' | 'client_unavailable' | 'account_unavailable';

/** For a token response (RFC 6749 §5.1). */
export interface IssuedTokens {
  readonly accessToken: string;
  readonly expiresInSeconds: number;
  readonly refreshToken: string;
  /** True if the refresh token was already replaced: its same successor is issued again. */
  readonly isRetry: boolean;
}

/** Why no token was issued. With `replayed`, the same step ended the authorization. */
export type NothingIssued = Exclude<Issue, { now: number }>['outcome'];

interface TokenLifetimes {
  readonly authorizationCodeSeconds: number;
  readonly accessTokenSeconds: number;
  readonly refreshTokenSeconds: number;
  readonly retryWindowSeconds: number;
  readonly absoluteAgeSeconds?: number | undefined;
}

export interface Authorizations {
  /** Creates the id and secret of an authorization that is being approved. */
  draft(): ValueSource;
  codeOf(draft: ValueSource): string;
  /** Stores the authorization: from now on its code can be exchanged. */
  begin(draft: ValueSource, approval: Approval): Promise<void>;

  /**
   * Returns the authorization of a code, access token or refresh token. Undefined if the value was
   * never issued, is an expired access token, or if the authorization itself has ended: whether its
   * connection, client and account are still active, `holdersOf` checks.
   */
  find(value: string): Promise<Found | undefined>;

  /** Returns its account and client, or why it is inactive. */
  holdersOf(authorization: Authorization): Promise<Holders | NotCounted>;

  /** Consumes the code. */
  exchange(authorization: Authorization): Promise<IssuedTokens | NothingIssued>;
  /** Replaces the refresh token of this rotation. */
  refresh(authorization: Authorization, rotation: number): Promise<IssuedTokens | NothingIssued>;

  /** Confirms in the background that the client received this token, because it was used. */
  noteUse(found: Found<PresentedAccessToken>): void;

  /** Waits for the confirmations in progress. */
  close(): Promise<void>;
}

/** The stored form of a value that the code exchange must repeat: 132 bits of its SHA-256. */
export const hashRequestValue = (text: string): string => sha256(text).slice(0, 22);

export function createAuthorizations(parts: {
  readonly store: TokenStore;
  readonly clients: Pick<ClientRegistry, 'find'>;
  readonly people: Pick<People, 'find'>;
  readonly clock: Clock;
  /** The first signs, all verify, so that a key can be replaced. */
  readonly keys: readonly [string, ...string[]];
  readonly lifetimes: TokenLifetimes;
}): Authorizations {
  const { store, clients, people, clock, lifetimes } = parts;
  const formats = createTokenFormats(parts.keys);
  const { refreshTokenSeconds: refreshSeconds, retryWindowSeconds } = lifetimes;
  const confirming = new Map<string, Promise<void>>();

  /** Uses the store's time, so that nodes whose clocks differ agree about a token. */
  function tokensFrom(
    authorization: Authorization,
    rotation: number,
    issue: Issue,
  ): IssuedTokens | NothingIssued {
    if (!('now' in issue)) return issue.outcome;
    const { now: issuedAt } = issue;
    // An access token must not outlive its authorization.
    const end = authorization.endsAt ?? Number.POSITIVE_INFINITY;
    const expiresAt = Math.min(issuedAt + lifetimes.accessTokenSeconds, end);
    return {
      accessToken: formats.accessToken(authorization, rotation, { issuedAt, expiresAt }),
      expiresInSeconds: expiresAt - issuedAt,
      refreshToken: formats.refreshToken(authorization, rotation),
      isRetry: issue.outcome === 'retried',
    };
  }

  async function findGenuine(value: PresentedValue): Promise<Found | undefined> {
    const id = value.authorizationId;
    const record = await store.readAuthorization(id);
    if (!record || !formats.isGenuine(value, record.secret)) return undefined;
    return { value, authorization: { id, ...record } };
  }

  return {
    draft: () => ({ id: randomId('', 22), secret: randomId('', 22) }),
    codeOf: formats.code,

    async begin({ id, secret }, { redirectUri, codeChallenge, ...approval }) {
      const { authorizationCodeSeconds: codeSeconds, accessTokenSeconds } = lifetimes;
      const hashes = {
        redirectUriHash: hashRequestValue(redirectUri),
        ...(codeChallenge !== undefined && { codeChallengeHash: hashRequestValue(codeChallenge) }),
      };
      // A client test ends its authorization; if that fails, it expires with its access token.
      const isTest = approval.generation === undefined;
      await store.beginAuthorization(
        id,
        { ...approval, secret, ...hashes },
        {
          codeSeconds,
          absoluteSeconds: isTest ? codeSeconds + accessTokenSeconds : lifetimes.absoluteAgeSeconds,
        },
      );
    },

    async find(text) {
      const value = readValue(text);
      if (!value) return undefined;
      // Check this first: an expired token needs no read of the store.
      if (value.kind === 'access_token' && value.expiresAt <= epochSeconds(clock)) return undefined;
      return findGenuine(value);
    },

    async holdersOf({ accountId, clientId, generation }) {
      const [client, person] = await Promise.all([
        clients.find(clientId),
        people.find(accountId, hasGeneration(clientId, generation ?? 0)),
      ]);
      if (!client || client.isSuspended) return 'client_unavailable';
      if (!person || person.account.isSuspended) return 'account_unavailable';
      const isCurrent = generation === undefined || generation === generationIn(person, clientId);
      return isCurrent ? { ...person, client } : 'ended';
    },

    async exchange(authorization) {
      const attempt = randomId('', 8);
      const issue = await store.exchangeCode(authorization.id, { attempt, refreshSeconds });
      return tokensFrom(authorization, 0, issue);
    },

    async refresh(authorization, rotation) {
      const attempt = randomId('', 8);
      const step = { from: rotation, attempt, refreshSeconds, retryWindowSeconds };
      return tokensFrom(authorization, rotation + 1, await store.rotate(authorization.id, step));
    },

    noteUse({ value: { rotation }, authorization: { id, ...record } }) {
      // Rotation 0 needs no confirmation: it has no predecessor that could be presented again.
      if (rotation === 0 || rotation !== record.rotation || record.isConfirmed) return;
      if (confirming.has(id)) return;
      const confirmed = store
        .confirmRotation(id, rotation)
        // The next use of the token tries again.
        .catch(() => {})
        .finally(() => confirming.delete(id));
      confirming.set(id, confirmed);
    },

    async close() {
      await Promise.all(confirming.values());
    },
  };
}
