/** The doctor's checks of strong sign-in methods and test organizations. */

import { createAccountRegistry } from '../accounts/account-registry.ts';
import { listStrongMethods } from '../accounts/strong-sign-ins.ts';
import { systemClock } from '../base/clock.ts';
import { unknownOrganizations } from '../changes/test-organizations.ts';
import type { SettingsWithoutSecrets } from '../config/settings.ts';
import { silentChangeFeed } from '../storage/change-feed.ts';
import { countText } from '../storage/pages.ts';
import type { Database } from '../storage/queries.ts';
import { type Findings, ok, type Verdict, warning } from './findings.ts';

export async function checkPeople(
  findings: Findings,
  database: Database,
  { signIn, api }: SettingsWithoutSecrets,
): Promise<void> {
  for (const { id } of await unknownOrganizations(database, api?.testOrganizations ?? [])) {
    const verdict = warning(`there is no organization ${id}`, 'remove the id, or correct it');
    findings.add('test_organizations', 'api.test_organizations', verdict);
  }
  if (signIn.require !== 'off') {
    findings.add('sign_in_require', 'sign_in.require', await owingVerdict(database, signIn));
  }
}

async function owingVerdict(database: Database, signIn: SettingsWithoutSecrets['signIn']): Promise<Verdict> {
  const parts = { database, changes: silentChangeFeed, clock: systemClock };
  const owing = listStrongMethods(signIn);
  const { more } = await createAccountRegistry(parts).list({ owing, limit: 0 });
  if (more === 0) return ok('every person to whom sign_in.require applies has a passkey or a provider');
  return warning(
    `${countText(more)} of the people to whom sign_in.require applies have neither a passkey nor a ` +
      'provider: after their grace period they can only open the page to add one',
    'ask these people to add one; `accounts list --owing-a-passkey` lists them',
  );
}
