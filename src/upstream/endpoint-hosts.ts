/** Limits the hosts of a provider's endpoints, whatever its discovery document says. */
import type { SignInProvider } from '../config/sign-in-providers.ts';

/** Additional hosts of providers with many customers, by the host of their issuer. */
const KNOWN_HOSTS: Readonly<Record<string, readonly string[]>> = {
  'accounts.google.com': [
    'oauth2.googleapis.com',
    'openidconnect.googleapis.com',
    'www.googleapis.com',
  ],
  'login.microsoftonline.com': ['graph.microsoft.com'],
};

/** Returns those `hosts` that are neither the issuer's, in its settings nor in `KNOWN_HOSTS`. */
export function unknownHosts(
  hosts: readonly string[],
  { issuer, endpointHosts }: Pick<SignInProvider, 'issuer' | 'endpointHosts'>,
): string[] {
  const issuerHost = new URL(issuer).hostname;
  const known = new Set(endpointHosts).add(issuerHost);
  for (const host of KNOWN_HOSTS[issuerHost] ?? []) known.add(host);
  return [...new Set(hosts)].filter((host) => !known.has(host));
}
