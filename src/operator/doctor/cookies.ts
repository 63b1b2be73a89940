/** Whether a browser would keep and guard the cookies that arrived, whatever a proxy did to them. */
import type { SeenCookie } from './browser.ts';
import type { Findings } from './findings.ts';

/** @param cookies every one that was set on the way through sign-in and consent. */
export function checkCookies(
  findings: Findings,
  { cookies, issuer }: { cookies: readonly SeenCookie[]; issuer: string },
): void {
  const check = 'cookies';
  const isSecure = issuer.startsWith('https:');
  if (cookies.length === 0) {
    findings.problem({
      check,
      where: issuer,
      message: 'no cookie arrived, so nobody can sign in',
      remedy: 'let the proxy pass Set-Cookie, and cache nothing',
    });
    return;
  }
  const faults = FAULTS.flatMap(({ words, isIn }) => {
    const names = namesOf(cookies.filter((cookie) => isIn(cookie, isSecure)));
    return names === '' ? [] : [`${words}: ${names}`];
  });
  if (faults.length > 0) {
    findings.problem({
      check,
      where: issuer,
      message: faults.join('; '),
      remedy:
        'let the proxy leave cookies as they are (nginx: no proxy_cookie_path, _domain or _flags), and restart nodes whose issuer was another',
    });
    return;
  }
  const kind = isSecure ? '__Host- or __Secure-, Secure, HttpOnly' : 'HttpOnly, plain on loopback';
  findings.ok(check, `${namesOf(cookies)}: ${kind}, SameSite=Lax`);
}

const FAULTS: readonly {
  readonly words: string;
  isIn(cookie: SeenCookie, isSecure: boolean): boolean;
}[] = [
  {
    words: 'without __Host- or __Secure-',
    isIn: ({ name }, isSecure) => isSecure && !/^__(Host|Secure)-/.test(name),
  },
  {
    words: 'not Secure',
    isIn: ({ attributes }, isSecure) => isSecure && !attributes.has('secure'),
  },
  { words: 'not HttpOnly', isIn: ({ attributes }) => !attributes.has('httponly') },
  { words: 'with a Domain', isIn: ({ attributes }) => attributes.has('domain') },
  {
    words: 'not for Path=/',
    isIn: ({ name, attributes }) => name.startsWith('__Host-') && attributes.get('path') !== '/',
  },
  {
    words: 'SameSite=None',
    isIn: ({ attributes }) => attributes.get('samesite')?.toLowerCase() === 'none',
  },
];

/** Each once, and without the signature that goes with it. */
const namesOf = (cookies: readonly SeenCookie[]): string =>
  [...new Set(cookies.map(({ name }) => name.replace(/\.sig$/, '')))].join(', ');
