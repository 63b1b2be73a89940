/** URLs of stores and of mail, and the hosts in them: which there are, and how they are shown. */
import { isIP } from 'node:net';
import { domainToASCII } from 'node:url';

/** For the remedies of URLs: what many passwords need and few people know. */
export const PASSWORDS_IN_URLS = 'in its password write % as %25, @ as %40, / as %2F';

/** Whether every `%` begins an encoded character: the clients would stumble over another. */
export function isDecodable(url: string): boolean {
  try {
    decodeURIComponent(url);
    return true;
  } catch {
    return false;
  }
}

/** RFC 1123 §2.1, with the underscore that container networks allow; neither wildcard nor empty label. */
const LABEL = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/i;

/** Whether this can be the name or the IP address of one machine. An IPv6 address has no brackets. */
export function isHost(host: string): boolean {
  if (isIP(host) !== 0) return true;
  const labels = host.split('.');
  // Only digits behind the last dot: an IP address, and a wrong one.
  return (
    host.length <= 253 &&
    labels.every((one) => LABEL.test(one)) &&
    !/^\d+$/.test(labels.at(-1) ?? '')
  );
}

/** Whether a URL that can be parsed names one machine, and a port that can be connected to. */
export function hasHost(url: string): boolean {
  const { hostname, port } = new URL(url);
  return isHost(hostname.replace(/^\[|\]$/g, '')) && port !== '0';
}

/** One text for all spellings of an email domain (UTS #46); empty if it is no domain. */
export const mailDomain = (domain: string): string => domainToASCII(domain.normalize('NFKC'));

/** https://www.postgresql.org/docs/current/libpq-ssl.html; `no-verify` is that of the driver. */
const SSL_MODES = [
  'disable',
  'allow',
  'prefer',
  'require',
  'verify-ca',
  'verify-full',
  'no-verify',
];

/** `postgres://` or `postgresql://`, one server. An `@` in the path is half a password. */
export function isDatabaseUrl(url: string): boolean {
  const form = /^postgres(ql)?:\/\/[^/?#]*(\/[^@?#]*)?(\?[^#]*)?$/;
  if (!form.test(url) || !URL.canParse(url) || !isDecodable(url)) return false;
  const { hostname, searchParams } = new URL(url);
  // The driver ignores a mode that it does not know, and connects without TLS.
  const sslMode = searchParams.get('sslmode');
  const isKnownMode = sslMode === null || SSL_MODES.includes(sslMode);
  const isSocket = hostname === '' || /^%2f/i.test(hostname);
  return isKnownMode && (isSocket || hasHost(url));
}

const host = String.raw`(?:\[[0-9a-fA-F:]+\]|[^\s/?#,:@[\]]+)(?::\d{1,5})?`;
const userinfo = String.raw`(?:[^\s/?#@]*@)?`;

const redisForms = [
  // One server, with an optional database number.
  new RegExp(String.raw`^rediss?://${userinfo}${host}(?:/\d{0,3})?$`),
  // Sentinels, and the name of the master they watch.
  new RegExp(String.raw`^rediss?\+sentinel://${userinfo}${host}(?:,${host})*/[\w.-]+$`),
  // Some nodes of a cluster; the others are learned from them.
  new RegExp(String.raw`^rediss?\+cluster://${userinfo}${host}(?:,${host})*/?$`),
];

/**
 * `redis://host:6379/0`, `redis+sentinel://host1:26379,host2:26379/mymaster` or
 * `redis+cluster://host1:7000,host2:7001`; `rediss` in place of `redis` for TLS.
 */
export function isRedisUrl(url: string): boolean {
  const ports = [...url.matchAll(/:(\d+)(?=[,/]|$)/g)].map(([, port]) => Number(port));
  return (
    redisForms.some((form) => form.test(url)) &&
    isDecodable(url) &&
    ports.every((port) => port > 0 && port <= 65_535) &&
    hostsOf(url).every(isHost)
  );
}

/** The hosts that a URL of a store, or of mail, names; none for a socket. */
export function hostsOf(url: string): string[] {
  const [, authority = ''] = /^[a-z+]+:\/\/(?:[^/?#]*@)?([^/?#]*)/.exec(url) ?? [];
  return authority
    .split(',')
    .map((one) => one.replace(/:\d+$/, '').replace(/^\[|\]$/g, ''))
    .filter(Boolean);
}

const HIDDEN = '***';

/** Parameters of a query whose values are never secret; of any other only the name is shown. */
const HARMLESS =
  /^(sslmode|sslrootcert|sslcert|sslkey|application_name|connect_timeout|host|port)=/;

/**
 * The URL with `***` in place of its password, wherever it stands: before the host, in the query,
 * percent-encoded or with the `@`, `/` and `?` that should have been. Several hosts stay several.
 * A text that is no URL is answered as it is.
 */
export function withoutPassword(url: string): string {
  const [, scheme, rest = ''] = /^([a-z][a-z0-9+.-]*:\/\/)(.*)$/is.exec(url) ?? [];
  if (scheme === undefined) return url;
  const [, place = '', query, fragment] = /^([^?#]*)(\?[^#]*)?(#.*)?$/s.exec(rest) ?? [];
  // The last one: whatever stands before it, it may be a part of a password.
  const at = place.lastIndexOf('@');
  const login = at < 0 ? '' : `${shownLogin(place.slice(0, at), scheme)}@`;
  return [
    scheme,
    login,
    place.slice(at + 1),
    query && `?${query.slice(1).split('&').map(shownParameter).join('&')}`,
    fragment && `#${HIDDEN}`,
  ].join('');
}

/** A name is shown where a password follows it. Alone, Redis users may have meant a password. */
function shownLogin(login: string, scheme: string): string {
  const [, name, separator] = /^((?:[\w.~+-]|%40)*)(:|$)/.exec(login) ?? [];
  if (name === undefined) return HIDDEN;
  if (separator === ':') return `${name}:${HIDDEN}`;
  return /^postgres/i.test(scheme) ? name : HIDDEN;
}

function shownParameter(parameter: string): string {
  if (HARMLESS.test(parameter)) return parameter;
  const name = /^[a-z_]+=/i.exec(parameter)?.[0];
  return name === undefined ? HIDDEN : `${name}${HIDDEN}`;
}
