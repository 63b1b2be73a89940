/** Restricts the hosts of a provider's endpoints, because a discovery document could name any host. */
import type { SignInProvider } from '../config/sign-in-providers.ts';

/** Additional hosts of well-known providers, keyed by the host of their issuer. */
const KNOWN_HOSTS: Readonly<Record<string, readonly string[]>> = {
  'accounts.google.com': ['oauth2.googleapis.com', 'openidconnect.googleapis.com', 'www.googleapis.com'],
  'login.microsoftonline.com': ['graph.microsoft.com'],
};

export function unknownHosts(
  hosts: readonly string[],
  { issuer, endpointHosts }: Pick<SignInProvider, 'issuer' | 'endpointHosts'>,
): string[] {
  const issuerHost = new URL(issuer).hostname;
  const known = new Set(endpointHosts).add(issuerHost);
  for (const host of KNOWN_HOSTS[issuerHost] ?? []) known.add(host);
  return [...new Set(hosts)].filter((host) => !known.has(host));
}
