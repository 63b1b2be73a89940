/** A grant that a partner keeps for years: what it leaves behind in the store. */
import { startSeeded } from '../support/seeded.ts';
import { forEachDeployment } from '../support/service.ts';
import { expectOneRecord } from './refresh-records.ts';

forEachDeployment('refresh tokens', (start) => {
  const on = startSeeded({ on: start });

  it('one grant refreshed 1,000 times keeps one refresh record', () =>
    expectOneRecord(on.service, on.partner, on.clients.confidential, 1_000));
});
