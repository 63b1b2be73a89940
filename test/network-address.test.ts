import { expect } from 'chai';
import { networkOf } from '../src/base/network-address.ts';

describe('the address that attempts are counted by', () => {
  const cases: readonly [why: string, address: string, counted: string][] = [
    ['IPv4 as it is', '203.0.113.7', '203.0.113.7'],
    ['IPv4 in IPv6, as Node says it', '::ffff:203.0.113.7', '203.0.113.7'],
    ['IPv4 in IPv6, in hexadecimal', '::ffff:cb00:7107', '203.0.113.7'],
    ['IPv4 in IPv6, in full', '0:0:0:0:0:FFFF:203.0.113.7', '203.0.113.7'],
    ['the network of IPv6', '2001:db8:a:b:c:d:e:f', '2001:db8:a:b::/64'],
    ['another host of it', '2001:DB8:A:B::1', '2001:db8:a:b::/64'],
    ['zeros that are left out before the 64 bits', '2001:db8::1', '2001:db8:0:0::/64'],
    ['zeros that are left out after them', '2001:db8:a:b::', '2001:db8:a:b::/64'],
    ['loopback', '::1', '0:0:0:0::/64'],
    ['a link-local address with its zone', 'fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['what is no address', 'unknown', 'unknown'],
    ['nothing', '', ''],
  ];
  for (const [why, address, counted] of cases) {
    it(`${why}: ${address}`, () => {
      expect(networkOf(address)).to.equal(counted);
    });
  }
});
