/** Some ways of each kind to end access. For all of them see `ways-to-end.slow.ts`. */
import { onPostgresAndRedis } from '../support/service.ts';
import { endOfAccess } from './ways-to-end.ts';

onPostgresAndRedis('the end of access', (start) => endOfAccess(start, 'varied'));
