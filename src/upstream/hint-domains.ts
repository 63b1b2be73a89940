/** Finds the sign-in provider for the domain of an email address. */
import type { SignInProvider } from '../config/sign-in-providers.ts';
import { mailDomain } from '../config/urls.ts';

/** Uses only the domain; does not check whether an account has the address. */
export function providerOf(
  email: string,
  providers: readonly SignInProvider[],
): { readonly provider: SignInProvider; readonly domain: string } | undefined {
  const domain = mailDomain(email.slice(email.lastIndexOf('@') + 1));
  const provider = providers.find(({ hintDomains }) => hintDomains.includes(domain));
  return email.includes('@') && provider ? { provider, domain } : undefined;
}
