/** Finds the network of an IP address. Rate limits count by network: a caller can use all addresses of a network. */
import { BlockList, isIP, isIPv6 } from 'node:net';

/** An address that no host has (RFC 5737 §3). The doctor sends it in `X-Forwarded-For`. */
export const BOGUS_ADDRESS = '203.0.113.7';

/**
 * Returns a whole IPv4 address, even if it is written as IPv6 (RFC 4291 §2.5.5.2). Shortens an IPv6 address to its
 * first 64 bits, because a user of one such address usually has all 2^64 addresses of the network (RFC 4291 §2.5.4).
 * Returns any other text unchanged, because a proxy may send any text.
 */
export function networkOf(address: string): string {
  const [withoutZone = ''] = address.split('%');
  if (!isIPv6(withoutZone)) return address;
  const groups = groupsOf(withoutZone);
  const [high = 0, low = 0] = groups.slice(6);
  if (isMappedIPv4(groups)) return [high >> 8, high & 255, low >> 8, low & 255].join('.');
  const network = groups.slice(0, 4).map((group) => group.toString(16));
  return `${network.join(':')}::/64`;
}

/** True for an IPv6 address that represents an IPv4 address (RFC 4291 §2.5.5.2). */
const isMappedIPv4 = (groups: readonly number[]): boolean =>
  groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff;

/** Returns the eight 16-bit numbers of an IPv6 address. @param address without zone */
function groupsOf(address: string): number[] {
  // The canonical form: lower case, no dotted part, `::` for zeros.
  const canonical = new URL(`http://[${address}]`).hostname.slice(1, -1);
  const [before = [], after = []] = canonical.split('::').map((half) => half.split(':').filter(Boolean));
  const missing = Array<string>(8 - before.length - after.length).fill('0');
  return [...before, ...missing, ...after].map((group) => Number.parseInt(group, 16));
}

/** False for `10.1.2.3/16`, which has bits after the prefix: its author may have meant a network or one address. */
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

/** @param networks in CIDR notation, such as `192.0.2.0/24` @returns whether an address is in one of them */
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
