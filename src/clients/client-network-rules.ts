/** The networks to which a client can be restricted, and whether an address is outside of them. */
import { isIP, isIPv6 } from 'node:net';
import { type Message, message } from '../base/message.ts';
import {
  beginsNetwork,
  createNetworkCheck,
  isMappedIPv4,
  type NetworkCheck,
  spelledIPv6,
} from '../base/network-address.ts';
import { Refusal } from '../base/refusal.ts';
import { inEnglish, problemOf } from '../texts/texts.ts';
import type { Client } from './client.ts';

const MAX_ALLOWED = 20;
/** The shortest allowed prefixes: no company has larger networks, and 20 of this size contain few addresses. */
const MIN_PREFIX = { ipv4: 8, ipv6: 16 };

/** True for kinds of clients that run on servers. A public client runs in the networks of its users. */
export const hasNetworks = ({ kind }: Pick<Client, 'kind'>): boolean => kind === 'confidential' || kind === 'machine';

/** The cause of a refusal. Shown only to the owner of the client and to the operator. */
export const FOREIGN_NETWORK = 'the secret is correct, but the client may not be used from this network';

/** Keyed by the list object, which is never modified, because a changed client is a new object. */
const checks = new WeakMap<readonly string[], NetworkCheck>();

/** True if the client is restricted to networks, and none of them contains the address. */
export function isForeignTo({ allowedNetworks }: Pick<Client, 'allowedNetworks'>, address: string): boolean {
  if (allowedNetworks.length === 0) return false;
  const isAllowed = checks.get(allowedNetworks) ?? createNetworkCheck(allowedNetworks);
  checks.set(allowedNetworks, isAllowed);
  return !isAllowed(address);
}

/** True if the client is restricted to networks, and none of them has an address in common with `network`. */
export function isAllForeignTo(client: Pick<Client, 'allowedNetworks'>, network: string): boolean {
  const includes = createNetworkCheck([network]);
  const start = (one: string): string => one.split('/')[0] ?? '';
  return isForeignTo(client, start(network)) && !client.allowedNetworks.some((allowed) => includes(start(allowed)));
}

export const unusedNetworks = (): Refusal =>
  new Refusal(
    'networks_unused',
    'Only confidential and machine clients can be restricted to networks.',
    'No change is needed: a public client runs where its users are.',
  );

/** Returns the networks in CIDR notation, each once, and addresses as networks. @throws Refusal `networks_invalid` */
export function readNetworks(entered: readonly string[]): string[] {
  const networks = entered.map((text) => {
    const network = readNetwork(text);
    if (network !== undefined && !isTooLarge(network)) return network;
    throw network === undefined
      ? invalidNetworks(message('client-secrets.networks_invalid', { network: text.slice(0, 50) }))
      : invalidNetworks(message('client-secrets.networks_too_large', { network, ...MIN_PREFIX }));
  });
  const distinct = [...new Set(networks)];
  if (distinct.length <= MAX_ALLOWED) return distinct;
  throw invalidNetworks(message('client-secrets.networks_too_many', { max: MAX_ALLOWED }));
}

function invalidNetworks(text: Message): Refusal {
  const problems = [problemOf('networks', text)];
  const remedy =
    'Write addresses, or networks with their first address, such as 192.0.2.0/24 or 2001:db8::/32, ' +
    'or none to allow all addresses.';
  return new Refusal('networks_invalid', inEnglish(text), remedy, { problems });
}

function isTooLarge(network: string): boolean {
  const isLong = network.includes(':');
  if (Number(network.split('/')[1]) < (isLong ? MIN_PREFIX.ipv6 : MIN_PREFIX.ipv4)) return true;
  // Refuse an IPv6 network that contains all IPv4 addresses in their IPv6 form.
  return isLong && createNetworkCheck([network])('::ffff:0:0');
}

function readNetwork(text: string): string | undefined {
  const [start = '', bits, ...more] = text.trim().toLowerCase().split('/');
  const size = isIPv6(start) ? 128 : 32;
  if (isIP(start) === 0 || start.includes('%') || isMappedIPv4(start) || more.length > 0) return undefined;
  if (bits !== undefined && !(/^\d{1,3}$/.test(bits) && Number(bits) <= size)) return undefined;
  const network = `${size === 128 ? spelledIPv6(start) : start}/${Number(bits ?? size)}`;
  return beginsNetwork(network) ? network : undefined;
}
