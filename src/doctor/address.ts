/** The doctor's checks of the public address: whether the service answers there, and whether it does so safely. */
import { BOGUS_ADDRESS, createNetworkCheck } from '../base/network-address.ts';
import { type Check, check, PUBLIC } from './check.ts';
import { PROXY_HELP } from './connection-errors.ts';
import { notChecked, ok, problem, trouble, type Verdict, warning } from './findings.ts';

const MIN_CERTIFICATE_DAYS = 14;
const DAY_MS = 86_400_000;

const RAISE = `write how many of your proxies append to X-Forwarded-For, which each of them must set or append to; ${PROXY_HELP}`;

/** @param seen `from` and `to`: both ends of the doctor's connection; `recorded`: the address that the service saw */
export function hopsVerdict(
  seen: Readonly<Record<'recorded' | 'from' | 'to', string>> & { readonly proxyHops: number },
): Verdict {
  const { recorded, from, to, proxyHops } = seen;
  const stated = `proxy_hops is ${proxyHops}`;
  if (recorded === BOGUS_ADDRESS) {
    return problem`the service accepted an X-Forwarded-For that the doctor invented (${BOGUS_ADDRESS}): any client can
      pretend to have any address; ${stated} → lower it to the number of proxies that append to the header, and make a
      proxy that passes it on unchanged overwrite it; ${PROXY_HELP}`;
  }
  if (recorded === from && (isLoopback(from) || from === to) && proxyHops === 0) {
    return warning`the service saw ${recorded}, the address of the doctor and of any proxy on this machine; ${stated} →
      if there is a proxy, ${RAISE}; without one you need not do anything`;
  }
  if (recorded === from) return ok(`the service saw ${recorded}, the address of the doctor; ${stated}`);
  const other = `the service saw ${recorded} instead of ${from}, the address of the doctor; ${stated}`;
  // Assume a proxy if the recorded address is `to`, or a loopback address, which no request from outside has.
  const isProxy = recorded === to || isLoopback(recorded);
  if (!isProxy && isPrivate(from) && !isPrivate(recorded) && proxyHops > 0) {
    return ok(`${other}: correct if this is the public address of this network`);
  }
  return trouble(
    isProxy ? 'problem' : 'warning',
  )`${other}: all people share it if it is that of a proxy, and one of them
    can lock all others out → ${RAISE}; a device in between may also give this machine that address`;
}

const isLoopback = createNetworkCheck(['127.0.0.0/8', '::1/128']);
const PRIVATE = '10.0.0.0/8 192.168.0.0/16 169.254.0.0/16 172.16.0.0/12 100.64.0.0/10 fc00::/7 fe80::/10';
const isPrivate = createNetworkCheck(PRIVATE.split(' '));

export const ADDRESS_CHECKS: readonly Check[] = [
  check('certificate', ['service'], PUBLIC, ({ service: { first } }) => {
    if (!first.certificateEnds) return notChecked('the address is http');
    const days = Math.floor((first.certificateEnds.getTime() - Date.now()) / DAY_MS);
    if (days >= MIN_CERTIFICATE_DAYS) return ok(`valid for ${days} more days`);
    return warning`only valid for ${days} more days →
      renew the certificate, and check that this happens by itself and that the proxy is then reloaded`;
  }),

  check('caching', ['service'], PUBLIC, async ({ service: { send }, signal }) => {
    const ids: (string | undefined)[] = [];
    let cookie = '';
    // Many caches store no answer that sets a cookie, so send two requests that already have the cookies.
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

/** Must run after the flow, because the doctor's sign-in in the flow makes the service record an address. */
export const HOPS_CHECK: Check = check(
  'proxy_hops',
  ['visitor', 'settings', 'service'],
  'server.proxy_hops',
  async ({ visitor, settings, service: { first }, address }) => {
    if (address !== undefined) return notChecked('--address bypasses the proxy');
    const isLocal = settings.issuer.startsWith('http:') && settings.server.proxyHops === 0;
    if (isLocal) return notChecked('the issuer is http, for this machine only');
    const recorded = await visitor.recordedAddress();
    if (recorded === undefined) return notChecked('the doctor could not sign in');
    return hopsVerdict({ ...first, recorded, proxyHops: settings.server.proxyHops });
  },
);
