/** Loads a provider's metadata when it is first needed (OpenID Connect Discovery 1.0), and caches it. */
import { allowInsecureRequests, type Configuration, customFetch, discovery, type ServerMetadata } from 'openid-client';
import type { Clock } from '../base/clock.ts';
import { isLoopbackOrigin } from '../config/issuer.ts';
import type { SignInProvider } from '../config/sign-in-providers.ts';
import { UpstreamAway } from './failures.ts';
import { createProviderFetch, TIME_LIMIT_SECONDS } from './fetching.ts';
import { isAddress, resolveEndpoint } from './internal-networks.ts';

const CACHE_MS = 3_600_000;
const PAUSE_AFTER_FAILURE_MS = 30_000;

/** All of these algorithms are asymmetric, so that only the provider can create a signature. */
export const ALGORITHMS: readonly string[] = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
];

type DiscoveredProvider = Pick<SignInProvider, 'issuer' | 'clientId' | 'endpointHosts'>;

export function createDiscovery({ provider, clock }: { readonly provider: DiscoveredProvider; readonly clock: Clock }) {
  let known: { readonly metadata: ServerMetadata; readonly until: number } | undefined;
  let failed: { readonly error: UpstreamAway; readonly until: number } | undefined;
  let asking: Promise<ServerMetadata> | undefined;

  async function ask(): Promise<ServerMetadata> {
    try {
      const metadata = await discover(provider);
      known = { metadata, until: clock() + CACHE_MS };
      failed = undefined;
      return metadata;
    } catch (error) {
      failed = { error: new UpstreamAway(error), until: clock() + PAUSE_AFTER_FAILURE_MS };
      // Return older metadata, because the provider's other endpoints may still work.
      if (known) return known.metadata;
      throw failed.error;
    } finally {
      asking = undefined;
    }
  }

  return {
    /** Concurrent calls share a request. After a failure, returns old metadata or throws. @throws UpstreamAway */
    async metadata(): Promise<ServerMetadata> {
      const now = clock();
      if (known && now < known.until) return known.metadata;
      if (failed && now < failed.until) {
        if (known) return known.metadata;
        throw failed.error;
      }
      asking ??= ask();
      return asking;
    },
  };
}

/** @throws Error whose message says what is wrong with the provider's answer */
async function discover(provider: DiscoveredProvider): Promise<ServerMetadata> {
  const { issuer, clientId } = provider;
  const configuration = await discovery(new URL(issuer), clientId, undefined, undefined, {
    [customFetch]: createProviderFetch(issuer),
    timeout: TIME_LIMIT_SECONDS,
    ...(issuer.startsWith('http:') && { execute: [allowInsecureRequests] }),
  });
  return accepted(configuration.serverMetadata(), provider);
}

/** Checks the metadata for problems that the client library does not check. */
async function accepted(
  metadata: ReturnType<Configuration['serverMetadata']>,
  provider: DiscoveredProvider,
): Promise<ServerMetadata> {
  const { issuer } = provider;
  // Compare exactly, because issuer and subject together identify a user.
  if (metadata.issuer !== issuer) {
    throw new Error(`the discovery document has the issuer ${JSON.stringify(metadata.issuer)}`);
  }
  const hosts: string[] = [];
  for (const name of ENDPOINTS) {
    const url = metadata[name];
    if (url === undefined && name === 'userinfo_endpoint') continue;
    if (typeof url !== 'string' || !isProtected(url, issuer)) {
      throw new Error(`the ${name} in the discovery document is missing or not https`);
    }
    hosts.push(new URL(url).hostname);
  }
  await checkHosts(hosts, provider);
  // RFC 8725 §3.1: a token must not choose its algorithm, and a provider must not choose `none`.
  const supported = metadata.id_token_signing_alg_values_supported ?? ['RS256'];
  const algorithms = supported.filter((algorithm) => ALGORITHMS.includes(algorithm));
  if (algorithms.length === 0) throw new Error('the provider offers no asymmetric signature algorithm for ID tokens');
  // Omit the function `supportsPKCE`, which cannot be cloned.
  const { supportsPKCE: _, ...plain } = metadata;
  return { ...plain, id_token_signing_alg_values_supported: algorithms };
}

async function checkHosts(hosts: readonly string[], provider: DiscoveredProvider): Promise<void> {
  // Check IP addresses first, because no setting can allow internal addresses. Names are checked when connecting.
  for (const host of hosts) if (isAddress(host)) await resolveEndpoint(host, provider.issuer);
  const unknown = unknownHosts(hosts, provider);
  if (unknown.length === 0) return;
  throw new Error(
    'the endpoints are on other hosts than the issuer: if the provider confirms these hosts, ' +
      `write endpoint_hosts: [${unknown.join(', ')}] into its entry of sign_in.providers`,
  );
}

/** Additional hosts of well-known providers, keyed by the host of their issuer. */
const KNOWN_HOSTS: Readonly<Record<string, readonly string[]>> = {
  'accounts.google.com': ['oauth2.googleapis.com', 'openidconnect.googleapis.com', 'www.googleapis.com'],
  'login.microsoftonline.com': ['graph.microsoft.com'],
};

/** Returns the hosts on which this provider must not have endpoints. A discovery document can name any host. */
export function unknownHosts(
  hosts: readonly string[],
  { issuer, endpointHosts }: Pick<SignInProvider, 'issuer' | 'endpointHosts'>,
): string[] {
  const issuerHost = new URL(issuer).hostname;
  const known = new Set(endpointHosts).add(issuerHost);
  for (const host of KNOWN_HOSTS[issuerHost] ?? []) known.add(host);
  return [...new Set(hosts)].filter((host) => !known.has(host));
}

const ENDPOINTS = ['authorization_endpoint', 'token_endpoint', 'jwks_uri', 'userinfo_endpoint'] as const;

const isProtected = (url: string, issuer: string): boolean =>
  URL.canParse(url) && (url.startsWith('https://') || (issuer.startsWith('http:') && isLoopbackOrigin(url)));
