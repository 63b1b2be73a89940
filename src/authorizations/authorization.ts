/** An authorization: what one person allowed one client, once, from approval to its end. */
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
  /** Public: it opens nothing, and resource servers are told it. */
  readonly id: string;
}

/** What the person approved, and what the exchange of the code must bring again. */
interface Approval {
  readonly accountId: string;
  readonly clientId: string;
  /** Of the connection; absent for a test, which belongs to none. */
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

/** Those for whom an authorization counts. */
interface Holders extends Pick<Person, 'account' | 'organizations'> {
  readonly client: Client;
}

/** Its connection was ended, or one of its two sides is suspended or gone. */
export type NotCounted = 'ended' | 'client_unavailable' | 'account_unavailable';

/** Of a token response, RFC 6749 §5.1. */
export interface IssuedTokens {
  readonly accessToken: string;
  /** Seconds. */
  readonly expiresIn: number;
  readonly refreshToken: string;
  /** The refresh token had been replaced already, and this is the same successor again. */
  readonly isRetry: boolean;
}

/** Nothing was issued. With `replayed` the authorization ended in the same step. */
export type NothingIssued = Exclude<Issue, { now: number }>['outcome'];

interface TokenLifetimes {
  readonly authorizationCodeSeconds: number;
  readonly accessTokenSeconds: number;
  readonly refreshTokenSeconds: number;
  readonly retryWindowSeconds: number;
  readonly absoluteAgeSeconds?: number | undefined;
}

export interface Authorizations {
  /** The id and secret of one that is being approved. */
  draft(): ValueSource;
  codeOf(draft: ValueSource): string;
  /** Keeps the authorization: from here on its code may be exchanged. */
  begin(draft: ValueSource, approval: Approval): Promise<void>;

  /**
   * The authorization behind a code, access token or refresh token. Undefined for what was never
   * issued, for an access token that has expired, and where the authorization ended by itself.
   * Whether it still counts, `holdersOf` says.
   */
  find(value: string): Promise<Found | undefined>;

  /** Who it is for, or why it does not count. */
  holdersOf(authorization: Authorization): Promise<Holders | NotCounted>;

  /** Uses the code up. */
  exchange(authorization: Authorization): Promise<IssuedTokens | NothingIssued>;
  /** Replaces the refresh token of this rotation. */
  refresh(authorization: Authorization, rotation: number): Promise<IssuedTokens | NothingIssued>;

  /** Whoever has this access token has received the answer it came in. Not waited for. */
  noteUse(found: Found<PresentedAccessToken>): void;

  /** Waits for what was noted. */
  close(): Promise<void>;
}

/** What the exchange brings again, as it is kept. 132 bits of the hash. */
export const hashOfRequest = (text: string): string => sha256(text).slice(0, 22);

export function createAuthorizations(parts: {
  readonly store: TokenStore;
  readonly clients: Pick<ClientRegistry, 'find'>;
  readonly people: Pick<People, 'find'>;
  readonly clock: Clock;
  /** The first signs, all are accepted: so that a key can be replaced. */
  readonly keys: readonly [string, ...string[]];
  readonly lifetimes: TokenLifetimes;
}): Authorizations {
  const { store, clients, people, clock, lifetimes } = parts;
  const formats = createTokenFormats(parts.keys);
  const { refreshTokenSeconds: refreshSeconds, retryWindowSeconds } = lifetimes;
  const confirming = new Map<string, Promise<void>>();

  /** By the store's clock, so that nodes whose clocks differ agree about a token. */
  function tokensFrom(
    authorization: Authorization,
    rotation: number,
    issue: Issue,
  ): IssuedTokens | NothingIssued {
    if (!('now' in issue)) return issue.outcome;
    const { now: issuedAt } = issue;
    // A token must not promise to live longer than its authorization.
    const end = authorization.endsAt ?? Number.POSITIVE_INFINITY;
    const expiresAt = Math.min(issuedAt + lifetimes.accessTokenSeconds, end);
    return {
      accessToken: formats.accessToken(authorization, rotation, { issuedAt, expiresAt }),
      expiresIn: expiresAt - issuedAt,
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
        redirectUriHash: hashOfRequest(redirectUri),
        ...(codeChallenge !== undefined && { codeChallengeHash: hashOfRequest(codeChallenge) }),
      };
      // A test ends its own. Should that fail, it is over with its first access token.
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
      // Asked before the store is: what has expired needs no record.
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
      // The first one has no predecessor that could be presented again.
      if (rotation === 0 || rotation !== record.rotation || record.isConfirmed) return;
      if (confirming.has(id)) return;
      const confirmed = store
        .confirmRotation(id, rotation)
        // The next use of the token says it again.
        .catch(() => {})
        .finally(() => confirming.delete(id));
      confirming.set(id, confirmed);
    },

    async close() {
      await Promise.all(confirming.values());
    },
  };
}
