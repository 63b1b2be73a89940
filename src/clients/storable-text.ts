/** Removes secrets from texts of requests, and characters that are harmful when stored or shown. */

/**
 * Returns a redirect URI without the values in its query, fragment and user information, so that it may be stored: a
 * client may have put anything there, even a code. URIs that differ only in such values become equal.
 */
export function withoutValues(uri: string): string {
  const [beforeFragment = '', ...fragment] = withoutSecrets(uri).split('#');
  const [beforeQuery = '', ...query] = beforeFragment.split('?');
  const parameters = query.join('?').split('&').map(withoutValue).join('&');
  return (
    beforeQuery.replace(/(:\/\/)[^/]*@/, '$1…@') +
    (query.length > 0 ? `?${parameters}` : '') +
    (fragment.length > 0 ? '#…' : '')
  );
}

function withoutValue(parameter: string): string {
  const [name = '', ...value] = parameter.split('=');
  if (value.length === 0) return name && '…';
  return value.join('=') === '' ? `${name}=` : `${name}=…`;
}

/** Replaces our own tokens and secrets, and characters that are invisible or cannot be stored. */
export const withoutSecrets = (text: string): string =>
  text.replace(/(gate_(?!ci_)[a-z]+_)[A-Za-z0-9_-]+/g, '$1…').replace(/\p{C}/gu, '\uFFFD');

/** Cuts a text, and replaces half of a surrogate pair at its end, which PostgreSQL rejects. */
export const cut = (text: string, maxLength: number): string => text.slice(0, maxLength).toWellFormed();
