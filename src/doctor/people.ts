/** The doctor's checks of strong sign-in methods and test organizations. */
import { createAccountRegistry } from '../accounts/account-registry.ts';
import { listStrongMethods } from '../accounts/strong-sign-ins.ts';
import { systemClock } from '../base/clock.ts';
import { unknownOrganizations } from '../changes/test-organizations.ts';
import { silentChangeFeed } from '../storage/change-feed.ts';
import { countText } from '../storage/pages.ts';
import { type Check, check } from './check.ts';
import { ok, warning } from './findings.ts';

export const PEOPLE_CHECKS: readonly Check[] = [
  check('test_organizations', ['database', 'settings'], 'api.test_organizations', async ({ database, settings }) => {
    const unknown = await unknownOrganizations(database, settings.api?.testOrganizations ?? []);
    return unknown.map(({ id }) => warning`there is no organization ${id} → remove the id, or correct it`);
  }),

  check('sign_in_require', ['database', 'settings'], 'sign_in.require', async ({ database, settings: { signIn } }) => {
    if (signIn.require === 'off') return [];
    const parts = { database, changes: silentChangeFeed, clock: systemClock };
    const { more } = await createAccountRegistry(parts).list({ owing: listStrongMethods(signIn), limit: 0 });
    if (more === 0) return ok('every person to whom sign_in.require applies has a passkey or a provider');
    return warning`${countText(more)} of the people to whom sign_in.require applies have neither a passkey nor a
      provider: after their grace period they can only open the page to add one →
      ask these people to add one; \`accounts list --owing-a-passkey\` lists them`;
  }),
];
