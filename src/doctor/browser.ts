/** A browser for the doctor: cookies kept as browsers keep them and looked at, forms filled in and sent. */

import { ok, problem, type Verdict } from './findings.ts';
import type { DoctorAnswer, Send } from './requests.ts';

export interface DoctorPage extends DoctorAnswer {
  /** The path that was asked for. */
  readonly path: string;
  /** Where a redirect leads. */
  readonly location: URL | undefined;
}

export interface SeenCookie {
  readonly name: string;
  readonly value: string;
  /** Names in lower case; an empty text for one without a value. */
  readonly attributes: ReadonlyMap<string, string>;
  /** Where the browser sends it. */
  readonly path: string;
}

const MOST_REDIRECTS = 10;

/** @param headers sent with every request. */
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
    for (let hops = 0; hops < MOST_REDIRECTS; hops += 1) {
      if (page.location?.origin !== issuer) return page;
      page = await ask(page.location.pathname + page.location.search);
    }
    return page;
  }

  return {
    /** Every cookie that was set, as it was set last. */
    get cookies(): readonly SeenCookie[] {
      return [...held.values()];
    },
    /** Follows redirects until a page or another origin is reached. */
    open: async (path: string) => follow(await ask(path)),

    /** Fills in and sends the form of `page` that has the field `name`; then as `open`. */
    async submit(page: DoctorPage, fields: Readonly<Record<string, string>>): Promise<DoctorPage> {
      const form = formWith(page.text, Object.keys(fields));
      if (!form) return page;
      const { pathname, search } = new URL(form.action || page.path, issuer);
      return follow(await ask(pathname + search, { ...form.hidden, ...fields }));
    },
  };
}

export type DoctorBrowser = ReturnType<typeof createBrowser>;

/** Whether the page has a form with this field or button. */
export const hasField = (page: DoctorPage, name: string): boolean =>
  formWith(page.text, [name]) !== undefined;

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

/** Our own pages write attributes in double quotes. */
function attribute(text: string, name: string): string | undefined {
  const [, value] = new RegExp(`(?:^|\\s)${name}="([^"]*)"`).exec(text) ?? [];
  return value
    ?.replace(/&(?:amp|#38);/g, '&')
    .replace(/&#34;/g, '"')
    .replace(/&#39;/g, "'");
}

function cookieOf(line: string, requestPath: string): SeenCookie {
  const [pair = '', ...rest] = line.split(';').map((part) => part.trim());
  const attributes = new Map(
    rest.map(split).map(([attributeName, text]) => [attributeName.toLowerCase(), text]),
  );
  const [name, value] = split(pair);
  // RFC 6265 §5.1.4: without a Path the folder of the request's path.
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
 * Whether a browser would keep and guard them, whatever a proxy did to them.
 *
 * @param cookies every one that was set on the way through sign-in and consent.
 */
export function cookiesVerdict(cookies: readonly SeenCookie[], issuer: string): Verdict {
  const isSecure = issuer.startsWith('https:');
  if (cookies.length === 0) {
    const remedy = 'let the proxy pass Set-Cookie, and cache nothing';
    return problem('no cookie arrived, so nobody can sign in', remedy);
  }
  const faults = FAULTS.flatMap(({ words, isIn }) => {
    const names = namesOf(cookies.filter((cookie) => isIn(cookie, isSecure)));
    return names === '' ? [] : [`${words}: ${names}`];
  });
  if (faults.length > 0) {
    return problem(
      faults.join('; '),
      'let the proxy leave cookies as they are (nginx: no proxy_cookie_path, _domain or _flags), and restart nodes whose issuer was another',
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

/** Each once, and without the signature that goes with it. */
const namesOf = (cookies: readonly SeenCookie[]): string =>
  [...new Set(cookies.map(({ name }) => name.replace(/\.sig$/, '')))].join(', ');
