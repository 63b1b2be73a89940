/** Every way to end access with the tokens in the embedded database, and in Redis those that `ways-to-end.test.ts` omits. */
import { onPostgresAndRedis, startsOn } from '../support/service.ts';
import { endOfAccess } from './ways-to-end.ts';

describe('every end of access, embedded', () => endOfAccess(startsOn('embedded'), 'all'));
onPostgresAndRedis('the other ends of access', (start) => endOfAccess(start, 'others'));
