/** What was ended by itself must be gone from the token store, unless an older one was restored. */
import { createActivity } from '../../accounts/activity/activity.ts';
import { createEndings } from '../../authorizations/endings.ts';
import { createRevocations } from '../../authorizations/revocations.ts';
import { systemClock } from '../../clock.ts';
import type { Database } from '../../storage/queries.ts';
import type { TokenStore } from '../../storage/token-store.ts';
import type { Findings } from './findings.ts';

export async function checkEndings(
  findings: Findings,
  database: Database,
  store: TokenStore,
): Promise<void> {
  const parts = { database, clock: systemClock };
  const activity = createActivity(parts);
  const revocations = createRevocations({ ...parts, activity, log: { warn: () => {} } });
  const { length } = await createEndings({ store, revocations }).findRevived();
  const check = 'ended_authorizations';
  if (length === 0) return findings.ok(check, 'none of the latest 100 is alive');
  findings.problem({
    check,
    message: `${length} of the latest 100 that were ended are alive: an older token store was restored`,
    where: 'the token store',
    remedy: '`revoke --recorded` ends again all that is recorded as ended',
  });
}
