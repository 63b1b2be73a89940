/** The cookies of one user without a browser: those of one origin, by name and path. */

interface Cookie {
  readonly name: string;
  readonly value: string;
  readonly path: string;
}

interface CookieJar {
  /** Stores the cookies that a response sets, and removes those that it expires. */
  take(headers: Headers, path: string): void;
  /** The `Cookie` header for a request to `path`, or undefined. */
  header(path: string): string | undefined;
  readonly names: readonly string[];
}

export function createCookieJar(): CookieJar {
  let cookies: Cookie[] = [];
  return {
    take(headers, path) {
      for (const line of headers.getSetCookie()) {
        const { cookie, isExpired } = parse(line, path);
        cookies = cookies.filter((held) => held.name !== cookie.name || held.path !== cookie.path);
        if (!isExpired) cookies.push(cookie);
      }
    },
    header(path) {
      const sent = cookies.filter((cookie) => isUnder(path, cookie.path));
      if (sent.length === 0) return undefined;
      return sent.map(({ name, value }) => `${name}=${value}`).join('; ');
    },
    get names() {
      return cookies.map(({ name }) => name);
    },
  };
}

function parse(line: string, requestPath: string): { cookie: Cookie; isExpired: boolean } {
  const [pair = '', ...attributes] = line.split(';').map((part) => part.trim());
  const attribute = (name: string): string | undefined => {
    const found = attributes.find((part) => part.toLowerCase().startsWith(`${name}=`));
    return found?.slice(name.length + 1);
  };
  const equals = pair.indexOf('=');
  const expires = attribute('expires');
  const maxAge = attribute('max-age');
  // RFC 6265 §5.1.4: the default Path is the directory of the request's path.
  const folder = requestPath.slice(0, requestPath.lastIndexOf('/')) || '/';
  return {
    cookie: {
      name: pair.slice(0, equals),
      value: pair.slice(equals + 1),
      path: attribute('path') ?? folder,
    },
    isExpired:
      (maxAge !== undefined && Number(maxAge) <= 0) || (expires !== undefined && Date.parse(expires) <= Date.now()),
  };
}

function isUnder(path: string, folder: string): boolean {
  if (path === folder) return true;
  return path.startsWith(folder.endsWith('/') ? folder : `${folder}/`);
}
