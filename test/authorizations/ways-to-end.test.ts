/** Every way to end access, with the tokens in Redis; the random walks end access on each store. */
import { onPostgresAndRedis } from '../support/service.ts';
import { endOfAccess } from './ways-to-end.ts';

onPostgresAndRedis('the end of access', endOfAccess);
