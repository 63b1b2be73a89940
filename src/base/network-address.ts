/** The network of a caller's address, by which rate limits count, because a caller can hardly change it. */
import { BlockList, isIP, isIPv4, isIPv6 } from 'node:net';

/** An address that no host has (RFC 5737 §3). The doctor sends it in `X-Forwarded-For`. */
export const BOGUS_ADDRESS = '203.0.113.7';

/**
 * Returns an IPv4 address as it is, even if it is written as IPv6 (RFC 4291 §2.5.5.2). Shortens IPv6
 * to the first 64 bits, because the owner of one address of such a network usually has all 2^64
 * (RFC 4291 §2.5.4). Returns any other text unchanged, because a proxy may send anything.
 */
export function networkOf(address: string): string {
  const [withoutZone = ''] = address.split('%');
  if (!isIPv6(withoutZone)) return address;
  const groups = groupsOf(withoutZone);
  const [high = 0, low = 0] = groups.slice(6);
  if (isMappedIPv4(withoutZone)) return [high >> 8, high & 255, low >> 8, low & 255].join('.');
  const network = groups.slice(0, 4).map((group) => group.toString(16));
  return `${network.join(':')}::/64`;
}

/** True for an IPv6 address that stands for an IPv4 address (RFC 4291 §2.5.5.2). */
export function isMappedIPv4(address: string): boolean {
  const groups = isIPv6(address) ? groupsOf(address) : [];
  return groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff;
}

/**
 * Returns the network that a server usually shares with the other servers of its site: 24 bits of an IPv4 address (also
 * in the form of IPv6), or 48 bits of an IPv6 address. Undefined for a loopback address and any other text.
 */
export function siteOf(address: string): string | undefined {
  const own = networkOf(address);
  if (isIPv4(own)) return own.startsWith('127.') ? undefined : `${own.split('.', 3).join('.')}.0/24`;
  const [start = ''] = own.split('/');
  if (!isIPv6(start)) return undefined;
  const [first = 0, second = 0, third = 0] = groupsOf(start);
  const site = [first, second, third].map((group) => group.toString(16)).join(':');
  // Write it in the usual form, for example without a third group that is 0.
  return site === '0:0:0' ? undefined : `${spelledIPv6(`${site}::`)}/48`;
}

/** Returns the canonical form of an IPv6 address without zone: no dotted part, at most one `::`, lower case. */
export const spelledIPv6 = (address: string): string => new URL(`http://[${address}]`).hostname.slice(1, -1);

/** Returns the eight 16-bit groups of an IPv6 address. */
function groupsOf(address: string): number[] {
  const [before = [], after = []] = spelledIPv6(address)
    .split('::')
    .map((half) => half.split(':').filter(Boolean));
  const missing = Array<string>(8 - before.length - after.length).fill('0');
  return [...before, ...missing, ...after].map((group) => Number.parseInt(group, 16));
}

/** True if no bit after the prefix is set. Otherwise, as in `10.1.2.3/16`, a network or an address may be meant. */
export function beginsNetwork(network: string): boolean {
  const [start = '', bits] = network.split('/');
  const [groups, prefix] = isIPv6(start)
    ? [groupsOf(start), Number(bits)]
    : [groupsOf(`::ffff:${start}`), Number(bits) + 96];
  return groups.every((group, index) => {
    const inPrefix = Math.min(Math.max(prefix - 16 * index, 0), 16);
    return (group & (0xffff >> inPrefix)) === 0;
  });
}

/** Returns a check whether an address is in one of these networks, such as `192.0.2.0/24`. */
export function createNetworkCheck(networks: readonly string[] = []): NetworkCheck {
  const list = new BlockList();
  for (const network of networks) {
    const [start = '', bits] = network.split('/');
    list.addSubnet(start, Number(bits), isIPv6(start) ? 'ipv6' : 'ipv4');
  }
  return (address = '') => {
    const [withoutZone = ''] = address.split('%');
    return isIP(withoutZone) !== 0 && list.check(withoutZone, `ipv${isIPv6(withoutZone) ? 6 : 4}`);
  };
}

export type NetworkCheck = (address?: string) => boolean;
