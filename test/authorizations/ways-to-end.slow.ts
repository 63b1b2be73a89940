/** Every way to end access with the tokens in the embedded database, and in Redis those that `ways-to-end.test.ts` omits. */
import { cheapPasswords } from '../support/cheap-passwords.ts';
import { onPostgresAndRedis, startsOn } from '../support/service.ts';
import { endOfAccess } from './ways-to-end.ts';

describe('every end of access, embedded', () => {
  cheapPasswords();
  endOfAccess(startsOn('embedded'), 'all');
});

onPostgresAndRedis('the other ends of access', (start) => {
  cheapPasswords();
  endOfAccess(start, 'others');
});
