/** What tests of passkeys in a real Chromium share. */
import type { Page } from 'playwright-core';
import { button } from '../../support/browser.ts';

/**
 * Adds a virtual authenticator. @returns controls of the authenticator: its touch, and whether it
 * verifies the user.
 */
export async function plugIn(page: Page) {
  const debug = await page.context().newCDPSession(page);
  await debug.send('WebAuthn.enable');
  const options = {
    ...({ protocol: 'ctap2', transport: 'internal' } as const),
    hasResidentKey: true,
    hasUserVerification: true,
    isUserVerified: true,
    automaticPresenceSimulation: false,
  };
  const added = await debug.send('WebAuthn.addVirtualAuthenticator', { options });
  const { authenticatorId } = added;
  return {
    touch: (enabled: boolean) => debug.send('WebAuthn.setAutomaticPresenceSimulation', { authenticatorId, enabled }),
    verify: (isUserVerified: boolean) => debug.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified }),
  };
}

/**
 * From now on the pages offer no passkey while one types. The authenticator, once touched, would take the
 * offer of a page that is still loading, and sign in before a click of the test.
 */
export const offerNothingWhileTyping = (page: Page) =>
  page.addInitScript('PublicKeyCredential.isConditionalMediationAvailable = async () => false');

/** Adds a passkey with this name. The page must be the security page of a signed-in user. */
export async function add(page: Page, name: string): Promise<void> {
  await page.getByRole('link', { name: 'Add a passkey' }).click();
  await page.getByLabel('Name').fill(name);
  await button(page, 'Create passkey').click();
}
