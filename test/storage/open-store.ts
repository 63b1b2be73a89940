/** The token store as a start of the service opens it, without a service around it. */
import { systemClock } from '../../src/clock.ts';
import { openDatabase } from '../../src/storage/database.ts';
import { openTokenStore } from '../../src/storage/open-token-store.ts';
import type { TokenStore } from '../../src/storage/token-store.ts';

/** Whoever opens it closes it. */
export async function openStore(
  redisUrl: string,
  { acceptVolatileRedis = false }: { acceptVolatileRedis?: boolean } = {},
): Promise<TokenStore> {
  // Not asked for anything where there is Redis, so it need not be there.
  const databaseUrl = 'postgres://postgres@127.0.0.1:1/postgres';
  const database = await openDatabase({ databaseUrl, dataDirectory: '' });
  const options = { redisUrl, acceptVolatileRedis, database, clock: systemClock };
  return (await openTokenStore(options)).store;
}
