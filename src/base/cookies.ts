/** The name prefixes and the attributes of all cookies of Gatehouse. */

const isSecure = (issuer: string): boolean => issuer.startsWith('https:');

/**
 * Returns the full name of a cookie. It has the prefix `__Host-` or `__Secure-` unless the issuer uses plain http,
 * over which not every browser accepts these prefixes.
 *
 * @param name the name without prefixes
 * @param isForOrigin false for a cookie that is bound to a path, which `__Host-` does not allow
 */
export function cookieName(issuer: string, name: string, isForOrigin = true): string {
  const prefix = isForOrigin ? '__Host-' : '__Secure-';
  return `${isSecure(issuer) ? prefix : ''}gate_${name}`;
}

/**
 * With `SameSite=Lax`, the browser also sends the cookie when the user follows a link in a mail, or is redirected by a
 * client or a sign-in provider. It does not send the cookie with a form of another site.
 */
export const cookieAttributes = (issuer: string) =>
  ({ httpOnly: true, sameSite: 'lax', secure: isSecure(issuer) }) as const;
