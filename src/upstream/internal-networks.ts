/** Prevents providers from directing requests into internal networks (server-side request forgery). */
import type { LookupAddress, LookupOptions } from 'node:dns';
import { lookup } from 'node:dns/promises';
import { isIP, isIPv6, type LookupFunction } from 'node:net';
import { createNetworkCheck } from '../base/network-address.ts';

type InternalNetwork = 'loopback' | 'link-local' | 'private';

/** Ranges of IANA's special-purpose registries (RFC 6890) with addresses of machines that may be reachable. */
const SUBNETS: Readonly<Record<InternalNetwork, readonly string[]>> = {
  // Linux connects to the machine itself for 0.0.0.0 and ::.
  loopback: ['127.0.0.0/8', '0.0.0.0/8', '::1/128', '::/128'],
  // At 169.254.169.254, cloud providers serve the machine's credentials.
  'link-local': ['169.254.0.0/16', 'fe80::/10'],
  private: [
    '10.0.0.0/8',
    '172.16.0.0/12',
    '192.168.0.0/16',
    // Addresses behind an internet provider's NAT (RFC 6598); clouds use them internally, too.
    '100.64.0.0/10',
    '192.0.0.0/24',
    '198.18.0.0/15',
    'fc00::/7',
    'fec0::/10',
  ],
};

const NETWORKS = Object.entries(SUBNETS).map(([network, subnets]) => {
  // NAT64 forwards to the IPv4 address in the last 32 bits (RFC 6052 §2.1).
  const translated = subnets.flatMap((subnet) => {
    const [address = '', bits] = subnet.split('/');
    return isIPv6(address) ? [] : `64:ff9b::${address}/${96 + Number(bits)}`;
  });
  const includes = createNetworkCheck([...subnets, ...translated]);
  return { network: network as InternalNetwork, includes };
});

/** @returns undefined for a public address */
const internalNetworkOf = (address: string): InternalNetwork | undefined =>
  NETWORKS.find(({ includes }) => includes(address))?.network;

/**
 * Resolves the host of an endpoint. Omits addresses in an internal network, unless the issuer itself has an address in
 * that network, because the operator has then chosen a provider in this network.
 *
 * @param hostname as in a URL: a name, an IPv4 address, or an IPv6 address in brackets
 * @throws InternalAddress if no address remains
 */
export async function resolveEndpoint(
  hostname: string,
  issuer: string,
  options: LookupOptions = {},
): Promise<LookupAddress[]> {
  const addresses = await resolve(hostname, options);
  const issuerHost = new URL(issuer).hostname;
  if (hostname === issuerHost) return addresses;
  const internal = addresses.flatMap(({ address }) => internalNetworkOf(address) ?? []);
  const [first] = internal;
  if (first === undefined) return addresses;
  const ofIssuer = (await resolve(issuerHost)).map(({ address }) => internalNetworkOf(address));
  const allowed = addresses.filter(({ address }) => {
    const network = internalNetworkOf(address);
    return network === undefined || ofIssuer.includes(network);
  });
  if (allowed.length === 0) throw new InternalAddress(hostname, first);
  return allowed;
}

/** An endpoint of a provider is in a network that cannot be reached from the internet. */
class InternalAddress extends Error {
  constructor(hostname: string, network: InternalNetwork) {
    super(
      `${hostname} is a ${network} address, but its issuer is not in that network: only a ` +
        'provider with an issuer in that network may have endpoints there',
    );
    this.name = 'InternalAddress';
  }
}

/** Returns a `lookup` function that checks the addresses of a host. The connection uses only a checked address. */
export const lookupFor =
  (issuer: string): LookupFunction =>
  (hostname, options, callback) => {
    resolveEndpoint(hostname, issuer, options).then(
      (addresses) => {
        const [first] = addresses;
        if (options.all) callback(null, addresses);
        else callback(null, first?.address ?? '', first?.family);
      },
      (error: NodeJS.ErrnoException) => callback(error, ''),
    );
  };

/** @param hostname as in a URL. `localhost` counts as an address, because it is always loopback (RFC 6761 §6.3). */
export const isAddress = (hostname: string): boolean =>
  hostname === 'localhost' || isIP(withoutBrackets(hostname)) !== 0;

const withoutBrackets = (hostname: string): string => hostname.replace(/^\[|\]$/g, '');

const resolve = (hostname: string, options: LookupOptions = {}): Promise<LookupAddress[]> =>
  lookup(withoutBrackets(hostname), { ...options, all: true });
