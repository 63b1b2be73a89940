/** From which provider the people of an email address come, as its domain says. */

import type { SignInProvider } from '../config/sign-in-providers.ts';
import { mailDomain } from '../config/urls.ts';

/** Whether there is an account of that address is not asked. */
export function providerOf(
  email: string,
  providers: readonly SignInProvider[],
): { readonly provider: SignInProvider; readonly domain: string } | undefined {
  const domain = mailDomain(email.slice(email.lastIndexOf('@') + 1));
  const provider = providers.find(({ hintDomains }) => hintDomains.includes(domain));
  return email.includes('@') && provider ? { provider, domain } : undefined;
}
