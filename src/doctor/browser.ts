/** A browser for the doctor: keeps cookies as browsers do and judges them, sends filled forms. */
import { ok, problem, type Verdict } from './findings.ts';
import type { DoctorAnswer, Send } from './requests.ts';

export interface DoctorPage extends DoctorAnswer {
  readonly path: string;
  readonly location: URL | undefined;
}

export interface SeenCookie {
  readonly name: string;
  readonly value: string;
  /** The names are in lower case; an attribute without a value has an empty string. */
  readonly attributes: ReadonlyMap<string, string>;
  /** The browser sends the cookie to this path and to the paths below it. */
  readonly path: string;
}

const MAX_REDIRECTS = 10;

/** @param headers sent with every request */
export function createBrowser({
  issuer,
  send,
  headers,
}: {
  issuer: string;
  send: Send;
  headers: Readonly<Record<string, string>>;
}) {
  const held = new Map<string, SeenCookie>();

  async function ask(path: string, form?: Readonly<Record<string, string>>): Promise<DoctorPage> {
    const { pathname } = new URL(path, issuer);
    const cookie = [...held.values()]
      .filter((seen) => isUnder(pathname, seen.path) && seen.value !== '')
      .map(({ name, value }) => `${name}=${value}`)
      .join('; ');
    const answer = await send({
      path,
      ...(form && { form }),
      headers: {
        accept: 'text/html',
        'sec-fetch-site': 'same-origin',
        ...(form && { origin: issuer }),
        ...(cookie && { cookie }),
        ...headers,
      },
    });
    for (const line of answer.headers.getSetCookie()) {
      const seen = cookieOf(line, pathname);
      held.set(`${seen.name} ${seen.path}`, seen);
    }
    const location = answer.headers.get('location');
    const target = location !== null && URL.canParse(location, issuer + path);
    return { ...answer, path, location: target ? new URL(location, issuer + path) : undefined };
  }

  async function follow(first: DoctorPage): Promise<DoctorPage> {
    let page = first;
    for (let hops = 0; hops < MAX_REDIRECTS; hops += 1) {
      if (page.location?.origin !== issuer) return page;
      page = await ask(page.location.pathname + page.location.search);
    }
    return page;
  }

  return {
    /** Every cookie that the service has set, in its latest version. */
    get cookies(): readonly SeenCookie[] {
      return [...held.values()];
    },
    /** Requests `path` and follows redirects to a page, or until they leave the issuer's origin. */
    open: async (path: string) => follow(await ask(path)),

    /** Fills in and sends the form of `page` with these fields; follows redirects like `open`. */
    async submit(page: DoctorPage, fields: Readonly<Record<string, string>>): Promise<DoctorPage> {
      const form = formWith(page.text, Object.keys(fields));
      if (!form) return page;
      const { pathname, search } = new URL(form.action || page.path, issuer);
      return follow(await ask(pathname + search, { ...form.hidden, ...fields }));
    },
  };
}

export type DoctorBrowser = ReturnType<typeof createBrowser>;

/** True if the page has a form with this field or button. */
export const hasField = (page: DoctorPage, name: string): boolean => formWith(page.text, [name]) !== undefined;

function formWith(html: string, names: readonly string[]) {
  for (const [, attributes = '', body = ''] of html.matchAll(/<form\b([^>]*)>(.*?)<\/form>/gs)) {
    const controls = [...body.matchAll(/<(?:input|button)\b([^>]*)>/gs)].map(([, text = '']) => ({
      name: attribute(text, 'name'),
      type: attribute(text, 'type'),
      value: attribute(text, 'value') ?? '',
    }));
    if (!names.every((name) => controls.some((control) => control.name === name))) continue;
    const hidden = controls
      .filter(({ name, type }) => name !== undefined && type === 'hidden')
      .map(({ name = '', value }) => [name, value] as const);
    return { action: attribute(attributes, 'action') ?? '', hidden: Object.fromEntries(hidden) };
  }
  return undefined;
}

/** Returns an attribute of a tag, but only in double quotes, as our own pages write them. */
function attribute(text: string, name: string): string | undefined {
  const [, value] = new RegExp(`(?:^|\\s)${name}="([^"]*)"`).exec(text) ?? [];
  return value
    ?.replace(/&(?:amp|#38);/g, '&')
    .replace(/&#34;/g, '"')
    .replace(/&#39;/g, "'");
}

function cookieOf(line: string, requestPath: string): SeenCookie {
  const [pair = '', ...rest] = line.split(';').map((part) => part.trim());
  const attributes = new Map(rest.map(split).map(([attributeName, text]) => [attributeName.toLowerCase(), text]));
  const [name, value] = split(pair);
  // RFC 6265 §5.1.4: the default Path is the directory of the request's path.
  const folder = requestPath.slice(0, requestPath.lastIndexOf('/')) || '/';
  return { name, value, attributes, path: attributes.get('path') || folder };
}

function split(text: string): readonly [string, string] {
  const [before = '', ...after] = text.split('=');
  return [before, after.join('=')];
}

const isUnder = (path: string, folder: string): boolean =>
  path === folder || path.startsWith(folder.endsWith('/') ? folder : `${folder}/`);

/**
 * Checks that browsers would accept and protect the cookies, even if a proxy changed them.
 *
 * @param cookies all cookies that were set during sign-in and consent
 */
export function cookiesVerdict(cookies: readonly SeenCookie[], issuer: string): Verdict {
  const isSecure = issuer.startsWith('https:');
  if (cookies.length === 0) {
    const remedy = 'make the proxy pass Set-Cookie on, and cache nothing';
    return problem('no cookie arrived, so sign-in is impossible', remedy);
  }
  const faults = FAULTS.flatMap(({ words, isIn }) => {
    const names = namesOf(cookies.filter((cookie) => isIn(cookie, isSecure)));
    return names === '' ? [] : [`${words}: ${names}`];
  });
  if (faults.length > 0) {
    return problem(
      faults.join('; '),
      'make the proxy pass cookies on unchanged (nginx: no proxy_cookie_path, _domain or ' +
        '_flags), and restart nodes that started with another issuer',
    );
  }
  const kind = isSecure ? '__Host- or __Secure-, Secure, HttpOnly' : 'HttpOnly, plain on loopback';
  return ok(`${namesOf(cookies)}: ${kind}, SameSite=Lax`);
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

/** Names each cookie once, without its signature cookie (`.sig`). */
const namesOf = (cookies: readonly SeenCookie[]): string =>
  [...new Set(cookies.map(({ name }) => name.replace(/\.sig$/, '')))].join(', ');
