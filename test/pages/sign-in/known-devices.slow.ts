/** More attempts at once than `known-devices.test.ts` makes. */
import { cheapPasswords } from '../../support/cheap-passwords.ts';
import { startsOn, type TestService } from '../../support/service.ts';
import { expectLimitUsedUp, settings } from './password-guessing.ts';

describe('while attackers guess a password a thousand times at once', () => {
  cheapPasswords();
  const start = startsOn();
  let service: TestService;

  before(async () => {
    service = await start({ settings });
  });

  it('they use up the limit exactly as one after another', () =>
    expectLimitUsedUp(service, 1_000, ['192.0.2.11', '192.0.2.12']));
});
