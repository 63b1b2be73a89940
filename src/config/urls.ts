/** Checks URLs of stores and mail servers, and shows them without passwords. */
import { isIP } from 'node:net';

/** Remedies for invalid URLs contain this text, because few people know that a password in a URL must be encoded. */
export const PASSWORDS_IN_URLS = 'in the password, write % as %25, @ as %40, / as %2F';

/** True if every `%` begins an encoded character. The drivers fail at any other `%`. */
export function isDecodable(url: string): boolean {
  try {
    decodeURIComponent(url);
    return true;
  } catch {
    return false;
  }
}

/** Matches a label of a host name (RFC 1123 §2.1), but no wildcard. Allows `_`, which container networks use. */
const LABEL = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/i;

/** True for a possible name or IP address of one machine. An IPv6 address must have no brackets. */
export function isHost(host: string): boolean {
  if (isIP(host) !== 0) return true;
  const labels = host.split('.');
  // If the last label has only digits, the name would be read as an invalid IP address.
  return host.length <= 253 && labels.every((one) => LABEL.test(one)) && !/^\d+$/.test(labels.at(-1) ?? '');
}

/** True if the host of a parsable URL is a single machine, and the port is not 0. */
export function hasHost(url: string): boolean {
  const { hostname, port } = new URL(url);
  return isHost(hostname.replace(/^\[|\]$/g, '')) && port !== '0';
}

/** https://www.postgresql.org/docs/current/libpq-ssl.html; only the driver knows `no-verify`. */
const SSL_MODES = ['disable', 'allow', 'prefer', 'require', 'verify-ca', 'verify-full', 'no-verify'];

/**
 * Accepts `postgres://` or `postgresql://`, with one server and one database. Without a database, the driver would use
 * a database named like the user. Refuses an `@` in the path: a password then contains a `/`.
 */
export function isDatabaseUrl(url: string): boolean {
  const form = /^postgres(ql)?:\/\/[^/?#]*\/[^/@?#]+(\?[^#]*)?$/;
  if (!form.test(url) || !URL.canParse(url) || !isDecodable(url)) return false;
  const { hostname, searchParams } = new URL(url);
  // Refuse unknown modes, other spellings of `sslmode`, and more than one value: the driver may ignore such parameters
  // and connect without TLS.
  const sslModes = [...searchParams].filter(([name]) => name.toLowerCase() === 'sslmode');
  const isKnownMode = sslModes.every(([name, mode]) => name === 'sslmode' && SSL_MODES.includes(mode));
  const isSocket = hostname === '' || /^%2f/i.test(hostname);
  return isKnownMode && sslModes.length <= 1 && (isSocket || hasHost(url));
}

const host = String.raw`(?:\[[0-9a-fA-F:]+\]|[^\s/?#,:@[\]]+)(?::\d{1,5})?`;
/** Refuses a name without a password, because the operator may have meant it as the password. */
const userinfo = String.raw`(?:[^\s/?#@:]*:[^\s/?#@]+@)?`;

const redisForms = [
  // One Redis server; a path is the number of a database on this server.
  new RegExp(String.raw`^rediss?://${userinfo}${host}(?:/\d{0,3})?$`),
  // Some Sentinels; the path is the name of the master that the Sentinels watch.
  new RegExp(String.raw`^rediss?\+sentinel://${userinfo}${host}(?:,${host})*/[\w.-]+$`),
  // Some nodes of a cluster. The client asks these nodes for the other nodes.
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

/** Returns the hosts in the URL of a store or a mail server; none for a socket. */
function hostsOf(url: string): string[] {
  const [, authority = ''] = /^[a-z+]+:\/\/(?:[^/?#]*@)?([^/?#]*)/.exec(url) ?? [];
  return authority
    .split(',')
    .map((one) => one.replace(/:\d+$/, '').replace(/^\[|\]$/g, ''))
    .filter(Boolean);
}

const HIDDEN = '***';

/** Query parameters whose values are never secret. All other parameters are shown by name only. */
const SHOWN_PARAMETERS = /^(sslmode|sslrootcert|sslcert|sslkey|application_name|connect_timeout|host|port)=/;

/**
 * Replaces the password in a URL with `***`, before the host and in the query, even if its `@`, `/` and `?` are not
 * percent-encoded as they should be. Keeps all hosts of a URL with several. Returns text that is not a URL unchanged.
 */
export function withoutPassword(url: string): string {
  const [, scheme, rest = ''] = /^([a-z][a-z0-9+.-]*:\/\/)(.*)$/is.exec(url) ?? [];
  if (scheme === undefined) return url;
  const [, place = '', query, fragment] = /^([^?#]*)(\?[^#]*)?(#.*)?$/s.exec(rest) ?? [];
  // Take the last `@`: everything before it may be part of a password.
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

/** Hides a login's password. For Redis, hides a name without a password, too: it may be the password. */
function shownLogin(login: string, scheme: string): string {
  const [, name, separator] = /^((?:[\w.~+-]|%40)*)(:|$)/.exec(login) ?? [];
  if (name === undefined) return HIDDEN;
  if (separator === ':') return `${name}:${HIDDEN}`;
  return /^postgres/i.test(scheme) ? name : HIDDEN;
}

function shownParameter(parameter: string): string {
  if (SHOWN_PARAMETERS.test(parameter)) return parameter;
  const name = /^[a-z_]+=/i.exec(parameter)?.[0];
  return name === undefined ? HIDDEN : `${name}${HIDDEN}`;
}
