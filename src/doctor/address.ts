/** The doctor's checks of the public address: does the service answer there, and safely? */
import { BOGUS_ADDRESS, createNetworkCheck } from '../base/network-address.ts';
import { listNodes } from '../storage/nodes.ts';
import { type Check, check, PUBLIC } from './check.ts';
import { PROXY_HELP } from './connection-errors.ts';
import { notChecked, ok, problem, type Verdict, warning } from './findings.ts';
import { runningOf } from './needs.ts';
import type { DoctorAnswer } from './requests.ts';

const MIN_CERTIFICATE_DAYS = 14;
const DAY_MS = 86_400_000;
const BYPASSED = notChecked('--address bypasses the proxy');

/** Declares a check of TLS, which does not apply to http. */
const tlsCheck = (name: string, run: (first: DoctorAnswer) => Verdict): Check =>
  check(name, ['service', 'settings'], PUBLIC, ({ service: { first }, settings, address }) => {
    if (new URL(address ?? settings.issuer).protocol === 'https:') return run(first);
    return notChecked(`${address ?? 'the issuer'} is http`);
  });

const RAISE = `write how many of your proxies append to X-Forwarded-For, which each of them must set or append to; ${PROXY_HELP}`;

/** The verdict if requests suggest a proxy, and the doctor cannot disprove it. */
const ignoredHeader = (nodes: readonly string[]): Verdict =>
  warning`X-Forwarded-For arrives at ${nodes.join(', ')}, but proxy_hops is 0 there: if there is a proxy in front, all
    people share its address and one of them can lock all others out →
    ${RAISE}; without a proxy, a client invented the header and you need not do anything`;

/**
 * Compares the address that the service recorded for the doctor with the doctor's own.
 *
 * @param seen.from the doctor's end of its connection; `to` is the other end
 * @param seen.ignoringNodes received `X-Forwarded-For` although their settings declare no proxy
 */
export function hopsVerdict(seen: {
  readonly recorded: string;
  readonly from: string;
  readonly to: string;
  readonly proxyHops: number;
  readonly ignoringNodes: readonly string[];
}): Verdict {
  const { recorded, from, to, proxyHops, ignoringNodes } = seen;
  const stated = `proxy_hops is ${proxyHops}`;
  if (recorded === BOGUS_ADDRESS) {
    return problem`the service accepted an X-Forwarded-For that the doctor invented (${BOGUS_ADDRESS}): any client can
      pretend to have any address; ${stated} → lower it to the number of proxies that append to the header, and make a
      proxy that passes it on unchanged overwrite it; ${PROXY_HELP}`;
  }
  const isIgnoring = ignoringNodes.length > 0;
  if (recorded === from) {
    // If the doctor's own address arrived, the flag proves nothing: any request with the header sets it.
    if (from === to && isIgnoring) return ignoredHeader(ignoringNodes);
    return ok(`the service saw ${recorded}, the address of the doctor; ${stated}`);
  }
  const other = `the service saw ${recorded} instead of ${from}, the address of the doctor; ${stated}`;
  // Only a proxy explains these addresses: not a NAT, and not a direct connection.
  if (recorded === to || isLoopback(recorded)) {
    return problem`${other}. It is the address of a proxy, so all people share it and one of them can lock all others
      out → ${RAISE}`;
  }
  if (isPrivate(from) && !isPrivate(recorded) && !isIgnoring)
    return ok(`${other}: correct if this network uses it outside`);
  return warning`${other}: it is that of a proxy, unless a device in between gives this machine that address → ${RAISE}`;
}

const isLoopback = createNetworkCheck(['127.0.0.0/8', '::1/128']);
const PRIVATE = '10.0.0.0/8 192.168.0.0/16 169.254.0.0/16 172.16.0.0/12 100.64.0.0/10 fc00::/7 fe80::/10';
const isPrivate = createNetworkCheck(PRIVATE.split(' '));

export const ADDRESS_CHECKS: readonly Check[] = [
  tlsCheck('certificate', ({ certificateEnds }) => {
    const days = Math.floor(((certificateEnds?.getTime() ?? 0) - Date.now()) / DAY_MS);
    if (days >= MIN_CERTIFICATE_DAYS) return ok(`valid for ${days} more days`);
    return warning`only valid for ${days} more days →
      renew the certificate, and check that this happens by itself and that the proxy is then reloaded`;
  }),

  tlsCheck('hsts', ({ headers }) => {
    const policy = headers.get('strict-transport-security');
    if (policy) return ok(`Strict-Transport-Security: ${policy}`);
    return warning`the header Strict-Transport-Security does not arrive →
      make the proxy pass this header of the service on; ${PROXY_HELP}`;
  }),

  check('caching', ['service'], PUBLIC, async ({ service: { send }, signal }) => {
    const ids: (string | undefined)[] = [];
    let cookie = '';
    // Many caches store no answer that sets a cookie. If the request has the first answer's cookies, none is set.
    for (const isWithCookies of [false, false, true, true]) {
      const headers = isWithCookies && cookie ? { cookie } : {};
      const answer = await send({ path: '/login', headers }).catch(() => undefined);
      signal.throwIfAborted();
      if (!answer?.requestId) return notChecked('/login was not answered, or without X-Request-Id');
      cookie ||= answer.headers
        .getSetCookie()
        .map((line) => line.split(';')[0])
        .join('; ');
      ids.push(answer.requestId);
    }
    const same = ids.find((id, index) => ids.indexOf(id) < index);
    if (same === undefined) return ok('no page is answered from a cache');
    return problem`two requests for /login got the same answer (${same}), although it says Cache-Control: no-store: one
      person may see the page of another → turn the cache in front off; ${PROXY_HELP}`;
  }),
];

/** Runs after the flow, in which the doctor signs in. */
export const HOPS_CHECK: Check = check(
  'proxy_hops',
  ['visitor', 'settings', 'database', 'service'],
  'server.proxy_hops',
  async ({ visitor, settings, database, service: { first }, address }) => {
    // Read the list again: during the flow a node may have received the header for the first time.
    const ignoring = runningOf(await listNodes(database)).filter(({ runsWith }) => runsWith.ignoresForwardedFor);
    const ignoringNodes = ignoring.map(({ node }) => node);
    if (address !== undefined) return ignoringNodes.length > 0 ? ignoredHeader(ignoringNodes) : BYPASSED;
    const recorded = await visitor.recordedAddress();
    if (recorded === undefined) return notChecked('the doctor could not sign in');
    return hopsVerdict({ ...first, recorded, ignoringNodes, proxyHops: settings.server.proxyHops });
  },
);
