/** Authorizations. Each begins with one approval of one client by one user. */
import type { ConnectionLimit } from '../accounts/access/access-limit.ts';
import type { People, Person } from '../accounts/access/people.ts';
import { type Clock, epochSeconds } from '../base/clock.ts';
import { randomId, sha256 } from '../base/random-id.ts';
import type { Client } from '../clients/client.ts';
import type { ClientRegistry } from '../clients/client-registry.ts';
import type { AuthorizationRecord, Issue, TokenStore } from '../storage/token-store.ts';
import { connectionIn, hasGeneration } from './connections.ts';
import {
  createTokenFormats,
  type PresentedAccessToken,
  type PresentedValue,
  readValue,
  type ValueSource,
} from './token-formats.ts';

export interface Authorization extends AuthorizationRecord {
  /** The id is not secret: it grants nothing, and resource servers receive it. */
  readonly id: string;
}

interface Approval extends Pick<AuthorizationRecord, 'accountId' | 'clientId' | 'generation' | 'clientGeneration'> {
  readonly redirectUri: string;
  /** The S256 challenge of RFC 7636 §4.2. */
  readonly codeChallenge?: string;
}

export interface Found<Value extends PresentedValue = PresentedValue> {
  readonly value: Value;
  readonly authorization: Authorization;
}

interface Parties extends Pick<Person, 'account' | 'organizations' | 'policies'> {
  readonly client: Client;
  readonly limit: ConnectionLimit | undefined;
}

/**
 * Why a value is refused. `ended`: the authorization or its connection was ended or has expired. `renewed`: the value
 * was issued before the client was renewed. Otherwise the client or account is suspended or deleted.
 */
export type InactiveReason = 'ended' | 'renewed' | 'client_unavailable' | 'account_unavailable';

export interface IssuedTokens {
  readonly accessToken: string;
  readonly expiresInSeconds: number;
  readonly refreshToken: string;
  /** True if the presented refresh token had already been replaced: the tokens of that refresh are returned again. */
  readonly isRetry: boolean;
}

/** Why no token was issued. With `replayed`, the caller must end the authorization. */
export type NothingIssued = Exclude<Issue, { now: number }>['outcome'];

export type Authorizations = ReturnType<typeof createAuthorizations>;

/** Returns the stored form of a value that the code exchange must repeat: 132 bits of its SHA-256. */
export const hashRequestValue = (text: string): string => sha256(text).slice(0, 22);

export function createAuthorizations(parts: {
  readonly store: TokenStore;
  readonly clients: Pick<ClientRegistry, 'find'>;
  readonly people: Pick<People, 'find' | 'hasEnded'>;
  readonly clock: Clock;
  /** The first key signs new values; all keys verify, so that a key can be replaced. */
  readonly keys: readonly [string, ...string[]];
  readonly lifetimes: {
    readonly authorizationCodeSeconds: number;
    readonly accessTokenSeconds: number;
    readonly refreshTokenSeconds: number;
    readonly retryWindowSeconds: number;
    readonly absoluteAgeSeconds?: number | undefined;
  };
}) {
  const { store, clients, people, clock, lifetimes } = parts;
  const formats = createTokenFormats(parts.keys);
  const { refreshTokenSeconds: refreshSeconds, retryWindowSeconds } = lifetimes;
  const confirming = new Map<string, Promise<void>>();

  /** Uses the clock of the store, so that all nodes agree when a token expires. */
  function tokensFrom(
    authorization: Authorization,
    clientGeneration: number,
    issue: Issue,
    until: Date | undefined,
  ): IssuedTokens | NothingIssued {
    if (!('now' in issue)) return issue.outcome;
    const { now: issuedAt, rotation } = issue;
    // An access token must expire no later than its authorization and the connection.
    const end = authorization.endsAt ?? Number.POSITIVE_INFINITY;
    const limit = until ? Math.floor(until.getTime() / 1000) : Number.POSITIVE_INFINITY;
    const expiresAt = Math.min(issuedAt + lifetimes.accessTokenSeconds, end, limit);
    // The clock of the store may be ahead of the clock with which the caller checked `until`.
    if (expiresAt <= issuedAt) return 'missing';
    return {
      accessToken: formats.accessToken(authorization, rotation, { issuedAt, expiresAt, clientGeneration }),
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
    draft: (): ValueSource => ({ id: randomId('', 22), secret: randomId('', 22) }),
    codeOf: formats.code,

    async begin({ id, secret }: ValueSource, given: Approval): Promise<void> {
      const { redirectUri, codeChallenge, clientGeneration, ...approval } = given;
      const hashes = {
        redirectUriHash: hashRequestValue(redirectUri),
        ...(codeChallenge !== undefined && { codeChallengeHash: hashRequestValue(codeChallenge) }),
      };
      await store.beginAuthorization(
        id,
        { ...approval, secret, ...hashes },
        {
          codeSeconds: lifetimes.authorizationCodeSeconds,
          absoluteSeconds: lifetimes.absoluteAgeSeconds,
          clientGeneration,
        },
      );
    },

    /**
     * Returns the authorization of a code, access token or refresh token. Undefined if the value was
     * never issued, is an expired access token, or if the authorization itself has ended. Does not check
     * that its connection, client and account are still active: `resolveParties` does.
     */
    async find(text: string): Promise<Found | undefined> {
      const value = readValue(text);
      if (!value) return undefined;
      // Check the expiry first, so that an expired token causes no read of the store.
      if (value.kind === 'access_token' && value.expiresAt <= epochSeconds(clock)) return undefined;
      return findGenuine(value);
    },

    /**
     * Returns the account and client of the authorization, or why it is inactive. Renewing a client leaves its refresh
     * tokens active, because each use of a refresh token also requires the client's new secret.
     */
    async resolveParties({ value, authorization }: Found): Promise<Parties | InactiveReason> {
      const { id, accountId, clientId, generation, clientGeneration } = authorization;
      const [client, person] = await Promise.all([
        clients.find(clientId),
        people.find(accountId, hasGeneration(clientId, generation)),
      ]);
      if (!client || client.isSuspended) return 'client_unavailable';
      if (!person || person.account.isSuspended) return 'account_unavailable';
      // A failover or a restored backup may bring an ended authorization back into the token store.
      if (clientGeneration < client.endedThrough || (await people.hasEnded(person, id))) return 'ended';
      const issuedIn = value.kind === 'access_token' ? value.clientGeneration : clientGeneration;
      if (value.kind !== 'refresh_token' && issuedIn < client.generation) return 'renewed';
      const [, current, limit] = connectionIn(person, clientId) ?? [];
      const isOver = limit?.until != null && limit.until.getTime() <= clock();
      return generation === current && !isOver ? { ...person, client, limit } : 'ended';
    },

    /** @param until sets the latest possible expiry of the access token */
    async exchange(authorization: Authorization, until?: Date): Promise<IssuedTokens | NothingIssued> {
      const attempt = randomId('', 8);
      const issue = await store.exchangeCode(authorization.id, { attempt, refreshSeconds });
      return tokensFrom(authorization, authorization.clientGeneration, issue, until);
    },

    /** Replaces this rotation's refresh token. A `client` with a secret from before its renewal gets no valid token. */
    async refresh(
      authorization: Authorization,
      rotation: number,
      { generation: clientGeneration }: Pick<Client, 'generation'>,
      until?: Date,
    ): Promise<IssuedTokens | NothingIssued> {
      const attempt = randomId('', 8);
      const step = { from: rotation, attempt, refreshSeconds, retryWindowSeconds, clientGeneration };
      const issue = await store.rotate(authorization.id, step);
      return tokensFrom(authorization, clientGeneration, issue, until);
    },

    /** Confirms in the background that the client received this token. The use of the token proves its receipt. */
    confirmUse({ value: { rotation }, authorization: { id, ...record } }: Found<PresentedAccessToken>): void {
      // Ignore rotation 0: it has no earlier refresh token that could be presented again. Ignore an access token of an
      // earlier rotation: it does not prove that the client received the current refresh token.
      if (rotation === 0 || rotation !== record.rotation || record.isConfirmed) return;
      if (confirming.has(id)) return;
      const confirmed = store
        .confirmRotation(id, rotation)
        // Ignore failures: the next use of the token tries again.
        .catch(() => {})
        .finally(() => confirming.delete(id));
      confirming.set(id, confirmed);
    },

    async close(): Promise<void> {
      await Promise.all(confirming.values());
    },
  };
}
