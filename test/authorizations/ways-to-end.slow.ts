/** The ways to end access that `ways-to-end.test.ts` omits, and its own ones and revocations in the embedded database. */
import { cheapPasswords } from '../support/cheap-passwords.ts';
import { onPostgresAndRedis, startsOn } from '../support/service.ts';
import { endOfAccess } from './ways-to-end.ts';

describe('an event that must end access does so on the embedded database', () => {
  cheapPasswords();
  endOfAccess(startsOn('embedded'), 'varied', 'revocations');
});

onPostgresAndRedis('the other ends of access', (start) => {
  cheapPasswords();
  endOfAccess(start, 'others');
});
