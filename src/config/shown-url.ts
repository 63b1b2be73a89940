/** URLs as they may be shown: who and where, without the password. */

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
