/** Who counts as one address: what a stranger can change without effort must not begin a new count. */
import { isIPv6 } from 'node:net';

/** Sent by the doctor in an `X-Forwarded-For` of its own: an address that no host has (RFC 5737 §3). */
export const BOGUS_ADDRESS = '203.0.113.7';

/**
 * The address to count by: IPv4 as it is, also where it is written as IPv6 (RFC 4291 §2.5.5.2); of
 * IPv6 the first 64 bits, because whoever has one address of such a network has all 2^64 of it
 * (RFC 4291 §2.5.4). Anything else (a proxy may write any text) as it is.
 */
export function networkOf(address: string): string {
  const [withoutZone = ''] = address.split('%');
  if (!isIPv6(withoutZone)) return address;
  const groups = groupsOf(withoutZone);
  const [high = 0, low = 0] = groups.slice(6);
  const isMapped = groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff;
  if (isMapped) return [high >> 8, high & 255, low >> 8, low & 255].join('.');
  const network = groups.slice(0, 4).map((group) => group.toString(16));
  return `${network.join(':')}::/64`;
}

/** The eight groups of 16 bits. */
function groupsOf(address: string): number[] {
  // As URLs spell it: no dotted part, one `::` at most.
  const spelled = new URL(`http://[${address}]`).hostname.slice(1, -1);
  const [before = [], after = []] = spelled
    .split('::')
    .map((half) => half.split(':').filter(Boolean));
  const missing = Array<string>(8 - before.length - after.length).fill('0');
  return [...before, ...missing, ...after].map((group) => Number.parseInt(group, 16));
}
