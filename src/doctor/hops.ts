/** Checks `server.proxy_hops` by the client address that the service saw. */
import { isIP } from 'node:net';
import { BOGUS_ADDRESS } from '../base/network-address.ts';
import { ok, problem, type Verdict, warning } from './findings.ts';

export interface SeenAddress {
  /** The client address that the service recorded for the doctor's sign-in. */
  readonly recorded: string;
  /** The two ends of the doctor's connection, as this machine knows them. */
  readonly from: string;
  readonly to: string;
  readonly proxyHops: number;
  /** Nodes that got `X-Forwarded-For` although they declare no proxy. */
  readonly ignoringNodes: readonly string[];
}

const RAISE =
  'write how many of your proxies append to X-Forwarded-For; each must set or append to it (nginx: proxy_set_header X-Forwarded-For $remote_addr)';

/** The address may be right, chosen by the caller, a proxy's, or impossible to judge from here. */
export function hopsVerdict(seen: SeenAddress): Verdict {
  const { recorded, from, to, proxyHops, ignoringNodes } = seen;
  const stated = `proxy_hops is ${proxyHops}`;
  if (recorded === BOGUS_ADDRESS) {
    return problem(
      `the service believed the X-Forwarded-For that the doctor made up (${BOGUS_ADDRESS}): anybody can pretend to come from anywhere; ${stated}`,
      'lower it to the number of proxies that append to that header; or the proxy passes the header on as it came: let it set it (nginx: proxy_set_header X-Forwarded-For $remote_addr)',
    );
  }
  const isSurelyProxys = isLoopback(recorded) || recorded === to;
  const isAmbiguous = from === to || OWN_ADDRESSES.includes(from);
  const mayBeProxys = recorded === from ? isAmbiguous : !isSurelyProxys && isPrivate(from);
  if (ignoringNodes.length > 0 && mayBeProxys) return ignoredHeader(ignoringNodes);
  if (recorded === from && isAmbiguous && proxyHops > 0) {
    return ok(
      `the service saw ${recorded}, which is this machine and the proxy as well: run the doctor on another machine to tell them apart`,
    );
  }
  if (recorded === from) {
    return ok(`the service saw ${recorded}, where the doctor came from; ${stated}`);
  }
  const proxysAddress = `the service saw ${recorded} in place of ${from}, where the doctor came from: `;
  if (isSurelyProxys) {
    return problem(
      `${proxysAddress}a proxy’s own address, so that all people share it and one of them can lock all out; ${stated}`,
      RAISE,
    );
  }
  if (isPrivate(recorded) && !isPrivate(to)) {
    return warning(
      `${proxysAddress}a private one, though the issuer has a public address, so probably a proxy’s; ${stated}`,
      RAISE,
    );
  }
  if (isPrivate(from)) {
    return ok(
      `the service saw ${recorded}: right if that is the address this network shows outside; ${stated}`,
    );
  }
  return warning(
    `${proxysAddress}right only if something on the way gives this machine that address, else a proxy’s; ${stated}`,
    RAISE,
  );
}

/** A proxy on this machine connects from these as well. */
const OWN_ADDRESSES: readonly string[] = ['127.0.0.1', '::1'];

/** Requests suggest that there is a proxy, and nothing that the doctor saw disproves it. */
export const ignoredHeader = (nodes: readonly string[]): Verdict =>
  warning(
    `X-Forwarded-For arrives at ${nodes.join(', ')}, and proxy_hops is 0 there: if a proxy is in front, all people share its address and one of them can lock all out`,
    `${RAISE}; without a proxy it is a client that made the header up, and nothing is to be done`,
  );

const isLoopback = (address: string): boolean => /^(127\.|::1$)/.test(address);

const isPrivate = (address: string): boolean =>
  isLoopback(address) ||
  (isIP(address) === 4
    ? /^(10\.|192\.168\.|169\.254\.|172\.(1[6-9]|2\d|3[01])\.|100\.(6[4-9]|[7-9]\d|1[01]\d|12[0-7])\.)/.test(
        address,
      )
    : /^f[cd]|^fe[89ab]/i.test(address));
