/** On which hosts a provider may have its endpoints, whatever its discovery document says. */
import type { SignInProvider } from '../config/sign-in-providers.ts';

/** Other hosts that providers with many customers use, by the host of their issuer. */
const KNOWN_HOSTS: Readonly<Record<string, readonly string[]>> = {
  'accounts.google.com': [
    'oauth2.googleapis.com',
    'openidconnect.googleapis.com',
    'www.googleapis.com',
  ],
  'login.microsoftonline.com': ['graph.microsoft.com'],
};

/** @param hosts of the endpoints. @returns those that neither the issuer nor the settings name. */
export function unknownHosts(
  hosts: readonly string[],
  { issuer, endpointHosts }: Pick<SignInProvider, 'issuer' | 'endpointHosts'>,
): string[] {
  const issuerHost = new URL(issuer).hostname;
  const known = new Set(endpointHosts).add(issuerHost);
  for (const host of KNOWN_HOSTS[issuerHost] ?? []) known.add(host);
  return [...new Set(hosts)].filter((host) => !known.has(host));
}
