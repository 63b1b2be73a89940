/** The token store as a start of the service opens it, without a service around it. */
import { type Clock, systemClock } from '../../src/base/clock.ts';
import { openDatabase } from '../../src/storage/database.ts';
import { openTokenStore } from '../../src/storage/open-token-store.ts';
import type { TokenStore } from '../../src/storage/token-store.ts';
import { timeShift } from '../support/stores.ts';

/** Whoever opens it closes it. */
export async function openStore(
  redisUrl: string,
  {
    acceptVolatileRedis = false,
    clock = systemClock,
  }: { acceptVolatileRedis?: boolean; clock?: Clock } = {},
): Promise<TokenStore> {
  // Not asked for anything where there is Redis, so it need not be there.
  const databaseUrl = 'postgres://postgres@127.0.0.1:1/postgres';
  const database = await openDatabase({ databaseUrl, dataDirectory: '' });
  const options = { redisUrl, acceptVolatileRedis, database, clock };
  return (await openTokenStore({ ...options, timeShift })).store;
}
