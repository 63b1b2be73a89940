/** Opens a token store as a service does when it starts. */
import { type Clock, systemClock } from '../../src/base/clock.ts';
import { openDatabase } from '../../src/storage/database.ts';
import { openTokenStore } from '../../src/storage/open-token-store.ts';
import type { TokenStore } from '../../src/storage/token-store.ts';
import { timeShift } from '../support/stores.ts';

/** Opens a store, which the caller must close. */
export async function openStore(
  redisUrl: string,
  { clock = systemClock, timeoutFactor = 1 }: { clock?: Clock; timeoutFactor?: number } = {},
): Promise<TokenStore> {
  // With Redis, the token store never uses the database, so the database need not exist.
  const databaseUrl = 'postgres://postgres@127.0.0.1:1/postgres';
  const database = await openDatabase({ databaseUrl, dataDirectory: '' });
  const options = { redisUrl, database, clock, timeoutFactor };
  return (await openTokenStore({ ...options, timeShift })).store;
}
