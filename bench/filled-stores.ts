/** Fills the stores with millions of authorizations, without keeping them in this process. */
import { hashRequestValue } from '../src/authorizations/authorization.ts';
import { createTokenFormats } from '../src/authorizations/token-formats.ts';
import { systemClock } from '../src/base/clock.ts';
import { sha256 } from '../src/base/random-id.ts';
import { openDatabase } from '../src/storage/database.ts';
import { openTokenStore } from '../src/storage/open-token-store.ts';
import { createPostgresStore } from '../src/storage/postgres-store.ts';
import type { Database } from '../src/storage/queries.ts';
import type { TestClient } from '../test/support/oauth.ts';
import { accountIdOf, fillPeople } from './connected-people.ts';
import { type RunningDeployment, TOKEN_KEY } from './deployment.ts';

const HOUR = 3_600;
const DAY = 24 * HOUR;
const REFRESH_SECONDS = 30 * DAY;
const ABSOLUTE_SECONDS = 365 * DAY;
/** Longer than a run: no token or code of a sample may expire during it. */
const SAMPLE_SECONDS = 12 * HOUR;
const RETRY_WINDOW_SECONDS = 60;
/** Filling the stores may take long. */
const TIMEOUT_FACTOR = 60;
/** Number of parallel calls of the store: enough to keep it busy, few enough for small buffers. */
const LANES = { redis: 500, postgres: 32 };
const DATABASE_CONNECTIONS = 16;
/** More than any refresh of the load: the store accepts a rotation that is ahead of its record. */
const AHEAD = 1_000_000;
/** A prime, by which the order of refreshes differs from the order in which the rows were written. */
const STRIDE = 7_368_787;

/** PKCE (RFC 7636), the same for all: its hash takes as much memory as any other. */
export const VERIFIER = sha256('the verifier of the bench');

export interface FilledStores {
  readonly database: Database;
  /** An access token and a refresh token of this authorization, which has not been refreshed yet. */
  tokensOf(number: number): { readonly accessToken: string; readonly refreshToken: string };
  /** Begins this many more authorizations. @returns their codes */
  makeCodes(count: number): Promise<string[]>;
  /**
   * Refreshes `count` times directly in the store, each authorization as often as any other. Their
   * earlier refresh tokens are replays afterwards.
   */
  refreshAll(count: number): Promise<void>;
  /** Writes this many authorizations that the next cleaning removes (PostgreSQL only). */
  writeExpired(count: number): Promise<void>;
  close(): Promise<void>;
}

/**
 * Opens the stores. Each authorization is computed from its number, so that none has to be kept.
 *
 * @param scale the number of authorizations, and of the people who own them in equal shares
 */
export async function openStores(
  { storage }: Pick<RunningDeployment, 'storage'>,
  client: TestClient,
  scale: { readonly authorizations: number; readonly people: number },
): Promise<FilledStores & { fill(): Promise<void> }> {
  const database = await openDatabase({
    ...storage,
    timeoutFactor: TIMEOUT_FACTOR,
    databaseConnections: DATABASE_CONNECTIONS,
  });
  const { store } = await openTokenStore({
    ...storage,
    database,
    clock: systemClock,
    timeoutFactor: TIMEOUT_FACTOR,
  });
  const formats = createTokenFormats([TOKEN_KEY]);
  const lanes = store.isInDatabase ? LANES.postgres : LANES.redis;
  const { authorizations: total } = scale;
  // The numbers below are of the authorizations that `fill` writes, perhaps before a restart.
  let begun = total;
  let expired = 0;
  let refreshed = 0;

  const sourceOf = (name: string | number) => ({
    id: sha256(`id ${name}`).slice(0, 22),
    secret: sha256(`secret ${name}`).slice(0, 22),
  });
  const factsOf = (number: number, secret: string) => ({
    accountId: accountIdOf(Math.floor((number * scale.people) / total) % scale.people),
    clientId: client.id,
    generation: 1,
    secret,
    redirectUriHash: hashRequestValue(client.redirectUri),
    codeChallengeHash: hashRequestValue(sha256(VERIFIER)),
  });
  const lifetimes = { codeSeconds: SAMPLE_SECONDS, absoluteSeconds: ABSOLUTE_SECONDS };

  async function begin(number: number) {
    const source = sourceOf(number);
    await store.beginAuthorization(source.id, factsOf(number, source.secret), lifetimes);
    return source;
  }

  return {
    database,

    /** Writes the people, their connections to the client, and the authorizations. */
    async fill() {
      await fillPeople(database, client, scale.people);
      await inParallel(total, lanes, async (number) => {
        const { id } = await begin(number);
        const step = { attempt: id.slice(0, 8), refreshSeconds: REFRESH_SECONDS };
        const { outcome } = await store.exchangeCode(id, step);
        if (outcome !== 'issued') throw new Error(`an exchange of the store was ${outcome}`);
      });
    },

    tokensOf(number) {
      const source = sourceOf(number);
      const issuedAt = Math.floor(Date.now() / 1_000);
      const times = { issuedAt, expiresAt: issuedAt + SAMPLE_SECONDS };
      return {
        accessToken: formats.accessToken(source, 0, times),
        refreshToken: formats.refreshToken(source, 0),
      };
    },

    async makeCodes(count) {
      const first = begun;
      begun += count;
      const codes = new Array<string>(count);
      await inParallel(count, lanes, async (number) => {
        codes[number] = formats.code(await begin(first + number));
      });
      return codes;
    },

    async refreshAll(count) {
      const first = refreshed;
      refreshed += count;
      await inParallel(count, lanes, async (number) => {
        const turn = first + number;
        const { id } = sourceOf((turn * STRIDE) % total);
        const { outcome } = await store.rotate(id, {
          from: AHEAD + Math.floor(turn / total),
          attempt: id.slice(0, 8),
          refreshSeconds: REFRESH_SECONDS,
          retryWindowSeconds: RETRY_WINDOW_SECONDS,
        });
        if (outcome !== 'issued') throw new Error(`a refresh of the store was ${outcome}`);
      });
    },

    async writeExpired(count) {
      // As if begun a day ago: a code is forgotten an hour after it has expired.
      const timeShift = () => -DAY * 1_000;
      const past = createPostgresStore({ database, clock: systemClock, timeShift });
      const first = expired;
      expired += count;
      await inParallel(count, lanes, async (number) => {
        const { id, secret } = sourceOf(`expired ${first + number}`);
        await past.beginAuthorization(id, factsOf(number, secret), lifetimes);
      });
    },

    async close() {
      await store.close();
      await database.close();
    },
  };
}

/** Runs `work` for each number below `count`, at most `lanes` at the same time. */
async function inParallel(count: number, lanes: number, work: (number: number) => Promise<void>): Promise<void> {
  let next = 0;
  async function lane(): Promise<void> {
    while (next < count) {
      const number = next;
      next += 1;
      await work(number);
    }
  }
  await Promise.all(Array.from({ length: lanes }, lane));
}
