/** Checks `server.proxy_hops` by the client address that the service saw. */
import { isIP } from 'node:net';
import { BOGUS_ADDRESS } from '../base/network-address.ts';
import { ok, problem, type Verdict, warning } from './findings.ts';

export interface SeenAddress {
  /** The client address that the service recorded for the doctor's sign-in. */
  readonly recorded: string;
  /** The two ends of the doctor's connection, as seen from this machine. */
  readonly from: string;
  readonly to: string;
  readonly proxyHops: number;
  /** Nodes that received `X-Forwarded-For` although their settings declare no proxy. */
  readonly ignoringNodes: readonly string[];
}

const RAISE =
  'write how many of your proxies append to X-Forwarded-For; each proxy must set or append ' +
  'to it (nginx: proxy_set_header X-Forwarded-For $remote_addr)';

/** Decides whether the recorded address is right, made up by the caller, a proxy's, or unclear. */
export function hopsVerdict(seen: SeenAddress): Verdict {
  const { recorded, from, to, proxyHops, ignoringNodes } = seen;
  const stated = `proxy_hops is ${proxyHops}`;
  if (recorded === BOGUS_ADDRESS) {
    return problem(
      'the service accepted an X-Forwarded-For that the doctor invented ' +
        `(${BOGUS_ADDRESS}): any client can pretend to have any address; ${stated}`,
      'lower it to the number of proxies that append to the header; if a proxy passes the header on unchanged, make ' +
        'it overwrite the header (nginx: proxy_set_header X-Forwarded-For $remote_addr)',
    );
  }
  const isSurelyProxys = isLoopback(recorded) || recorded === to;
  const isAmbiguous = from === to || OWN_ADDRESSES.includes(from);
  const mayBeProxys = recorded === from ? isAmbiguous : !isSurelyProxys && isPrivate(from);
  if (ignoringNodes.length > 0 && mayBeProxys) return ignoredHeader(ignoringNodes);
  if (recorded === from && isAmbiguous && proxyHops > 0) {
    return ok(
      `the service saw ${recorded}, which is the address of both this machine and the ` +
        'proxy: run the doctor on another machine to tell them apart',
    );
  }
  if (recorded === from) {
    return ok(`the service saw ${recorded}, the correct address of the doctor; ${stated}`);
  }
  const proxysAddress = `the service saw ${recorded} instead of ${from}, the address of the doctor. It is `;
  if (isSurelyProxys) {
    return problem(
      `${proxysAddress}the address of a proxy, so all people share it and one of them can ` +
        `lock all others out; ${stated}`,
      RAISE,
    );
  }
  if (isPrivate(recorded) && !isPrivate(to)) {
    return warning(
      `${proxysAddress}a private address although the issuer has a public one, so probably that of a proxy; ${stated}`,
      RAISE,
    );
  }
  if (isPrivate(from)) {
    return ok(`the service saw ${recorded}: correct if this network uses that address towards the outside; ${stated}`);
  }
  return warning(
    `${proxysAddress}correct only if a device in between gives this machine that address, ` +
      `otherwise it is that of a proxy; ${stated}`,
    RAISE,
  );
}

/** Loopback addresses: the doctor's own, or those of a proxy on this machine. */
const OWN_ADDRESSES: readonly string[] = ['127.0.0.1', '::1'];

/** Returns a warning: requests suggest a proxy, and the doctor could not disprove that. */
export const ignoredHeader = (nodes: readonly string[]): Verdict =>
  warning(
    `X-Forwarded-For arrives at ${nodes.join(', ')}, but proxy_hops is 0 there: if there ` +
      'is a proxy in front, all people share its address and one of them can lock all others out',
    `${RAISE}; without a proxy, a client invented the header and you need not do anything`,
  );

const isLoopback = (address: string): boolean => /^(127\.|::1$)/.test(address);

const isPrivate = (address: string): boolean =>
  isLoopback(address) ||
  (isIP(address) === 4
    ? /^(10\.|192\.168\.|169\.254\.|172\.(1[6-9]|2\d|3[01])\.|100\.(6[4-9]|[7-9]\d|1[01]\d|12[0-7])\.)/.test(address)
    : /^f[cd]|^fe[89ab]/i.test(address));
