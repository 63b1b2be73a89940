import { expect } from 'chai';
import { createNetworkCheck, networkOf } from '../src/base/network-address.ts';

describe('attempts are counted under a key derived from the IP address', () => {
  const cases: readonly [why: string, address: string, counted: string][] = [
    ['the IPv4 address', '203.0.113.7', '203.0.113.7'],
    ['IPv4 in IPv6, as Node reports it', '::ffff:203.0.113.7', '203.0.113.7'],
    ['IPv4 in IPv6, in hexadecimal', '::ffff:cb00:7107', '203.0.113.7'],
    ['IPv4 in IPv6, in full', '0:0:0:0:0:FFFF:203.0.113.7', '203.0.113.7'],
    ['the network of IPv6', '2001:db8:a:b:c:d:e:f', '2001:db8:a:b::/64'],
    ['the same network for another host', '2001:DB8:A:B::1', '2001:db8:a:b::/64'],
    ['zeros omitted within the first 64 bits', '2001:db8::1', '2001:db8:0:0::/64'],
    ['zeros omitted after them', '2001:db8:a:b::', '2001:db8:a:b::/64'],
    ['loopback', '::1', '0:0:0:0::/64'],
    ['a link-local address with its zone', 'fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['a text that is no address', 'unknown', 'unknown'],
    ['the empty text', '', ''],
  ];
  for (const [why, address, counted] of cases) {
    it(`attempts from ${JSON.stringify(address)} are counted under ${JSON.stringify(counted)}: ${why}`, () => {
      expect(networkOf(address)).to.equal(counted);
    });
  }
});

describe('the check whether an address is in a network', () => {
  const isIn = createNetworkCheck(['10.1.0.0/16', '192.0.2.7/32', '2001:db8::/32']);
  const inside = ['10.1.255.255', '::ffff:10.1.2.3', '192.0.2.7', '2001:db8:1::1', '2001:db8::%eth0'];
  const outside = ['10.2.0.0', '192.0.2.8', '::ffff:10.2.0.1', '2001:db9::', '::1', 'unknown', ''];

  it('exactly the IP addresses in a network match it, including IPv4 addresses in IPv6 notation', () => {
    expect(inside.filter(isIn)).to.deep.equal(inside);
    expect(outside.filter(isIn)).to.deep.equal([]);
  });

  it('without configured networks, no address matches, and a missing address matches no network', () => {
    expect(createNetworkCheck()('10.1.2.3')).to.equal(false);
    expect(isIn()).to.equal(false);
  });
});
