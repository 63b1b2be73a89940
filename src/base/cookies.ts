/** The name prefixes of our cookies, and the attributes that all of them have. */

const isSecure = (issuer: string): boolean => issuer.startsWith('https:');

/**
 * Adds the prefix `__Host-` or `__Secure-`; none for a loopback issuer, because not every browser accepts these
 * prefixes over plain http.
 *
 * @param name without any prefix
 * @param isForOrigin false for a cookie that is bound to a path, which `__Host-` does not allow
 */
export function cookieName(issuer: string, name: string, isForOrigin = true): string {
  const prefix = isForOrigin ? '__Host-' : '__Secure-';
  return `${isSecure(issuer) ? prefix : ''}gate_${name}`;
}

/**
 * Attributes of every cookie. With `SameSite=Lax`, the browser also sends the cookie when the user follows a link in a
 * mail, or when a client or a provider redirects the user back, but not with a form of another site.
 */
export const cookieAttributes = (issuer: string) =>
  ({ httpOnly: true, sameSite: 'lax', secure: isSecure(issuer) }) as const;
