/** What the address that the service saw tells of `server.proxy_hops`. */
import { isIP } from 'node:net';
import type { Findings } from './findings.ts';

/** Sent by the doctor as if a proxy had written it: RFC 5737 §3, an address nobody has. */
export const BOGUS_ADDRESS = '203.0.113.7';

export interface SeenAddress {
  /** What the service recorded of the doctor's sign-in. */
  readonly recorded: string;
  /** The two ends of the doctor's connection, as this machine knows them. */
  readonly from: string;
  readonly to: string;
  readonly proxyHops: number;
}

const CHECK = 'proxy_hops';
const WHERE = 'server.proxy_hops';
const RAISE =
  'write how many of your proxies append to X-Forwarded-For; each must set or append to it (nginx: proxy_set_header X-Forwarded-For $remote_addr)';

/** The address may be right, one that anybody can choose, a proxy's, or not to be told from here. */
export function checkHops(findings: Findings, seen: SeenAddress): void {
  const { recorded, from, to, proxyHops } = seen;
  const stated = `proxy_hops is ${proxyHops}`;
  if (recorded === BOGUS_ADDRESS) {
    findings.problem({
      check: CHECK,
      where: WHERE,
      message: `the service believed the X-Forwarded-For that the doctor made up (${BOGUS_ADDRESS}): anybody can pretend to come from anywhere; ${stated}`,
      remedy:
        'lower it to the number of proxies that append to that header; or the proxy passes the header on as it came: let it set it (nginx: proxy_set_header X-Forwarded-For $remote_addr)',
    });
    return;
  }
  if (recorded === from) {
    const isAmbiguous = from === to;
    findings.ok(
      CHECK,
      isAmbiguous && proxyHops > 0
        ? `the service saw ${recorded}, which is this machine and the proxy as well: run the doctor on another machine to tell them apart`
        : `the service saw ${recorded}, where the doctor came from; ${stated}`,
    );
    return;
  }
  const proxysAddress = `the service saw ${recorded} in place of ${from}, where the doctor came from: `;
  if (isLoopback(recorded) || recorded === to) {
    findings.problem({
      check: CHECK,
      where: WHERE,
      remedy: RAISE,
      message: `${proxysAddress}a proxy’s own address, so that all people share it and one of them can lock all out; ${stated}`,
    });
    return;
  }
  if (isPrivate(recorded) && !isPrivate(to)) {
    findings.warning({
      check: CHECK,
      where: WHERE,
      remedy: RAISE,
      message: `${proxysAddress}a private one, though the issuer has a public address, so probably a proxy’s; ${stated}`,
    });
    return;
  }
  if (isPrivate(from)) {
    findings.ok(
      CHECK,
      `the service saw ${recorded}: right if that is the address this network shows outside; ${stated}`,
    );
    return;
  }
  findings.warning({
    check: CHECK,
    where: WHERE,
    remedy: RAISE,
    message: `${proxysAddress}right only if something on the way gives this machine that address, else a proxy’s; ${stated}`,
  });
}

const isLoopback = (address: string): boolean => /^(127\.|::1$)/.test(address);

const isPrivate = (address: string): boolean =>
  isLoopback(address) ||
  (isIP(address) === 4
    ? /^(10\.|192\.168\.|169\.254\.|172\.(1[6-9]|2\d|3[01])\.|100\.(6[4-9]|[7-9]\d|1[01]\d|12[0-7])\.)/.test(
        address,
      )
    : /^f[cd]|^fe[89ab]/i.test(address));
