/** A person who uses the pages without JavaScript: plain HTTP, a cookie jar, and the forms. */
import { createCookieJar } from './cookie-jar.ts';
import { type Form, formsOf } from './forms.ts';

export interface Credentials {
  readonly email: string;
  readonly password: string;
}

export interface Page {
  readonly url: URL;
  readonly status: number;
  readonly headers: Headers;
  readonly html: string;
  /** The target of a redirect, resolved against `url`. */
  readonly location: URL | undefined;
  readonly forms: readonly Form[];
}

export type Fields = Readonly<Record<string, string | readonly string[]>>;

export interface Person {
  /** Sends one request and follows no redirect. `headers` replace those that a browser would send. */
  get(path: string | URL, headers?: Record<string, string>): Promise<Page>;
  /** Like `get`, but follows redirects as `follow` does. */
  open(path: string | URL, headers?: Record<string, string>): Promise<Page>;
  /** Posts a form without loading its page first. */
  post(path: string | URL, fields: Fields, headers?: Record<string, string>): Promise<Page>;
  /**
   * Fills in and sends the form of `page` that has all these fields, with its other values unchanged;
   * follows no redirect. @throws Error if the page has no such form
   */
  submit(page: Page, fields: Fields, headers?: Record<string, string>): Promise<Page>;
  /** Follows redirects until a page or another origin is reached. */
  follow(page: Page): Promise<Page>;
  /** Opens `path` and signs in when asked to. @returns the page that is then reached */
  signIn(credentials: Credentials, path?: string): Promise<Page>;
  /** Makes a whole authorization request. @returns the redirect to the partner, without following it */
  authorize(authorizationUrl: string | URL, credentials: Credentials, decision?: 'approve' | 'deny'): Promise<URL>;
  readonly cookieNames: readonly string[];
  cookieHeader(path: string): string;
}

/** Creates a person with an empty cookie jar, like a new browser. */
export function createPerson(issuer: string): Person {
  const jar = createCookieJar();
  const { origin } = new URL(issuer);

  async function request(url: URL, init: RequestInit): Promise<Page> {
    const headers = new Headers(init.headers);
    const cookie = jar.header(url.pathname);
    if (cookie !== undefined) headers.set('cookie', cookie);
    const response = await fetch(url, { ...init, headers, redirect: 'manual' });
    jar.take(response.headers, url.pathname);
    const html = await response.text();
    const location = response.headers.get('location');
    return {
      url,
      status: response.status,
      headers: response.headers,
      html,
      location: location === null ? undefined : new URL(location, url),
      forms: formsOf(html),
    };
  }

  const person: Person = {
    get cookieNames() {
      return jar.names;
    },

    cookieHeader: (path) => jar.header(path) ?? '',

    get: (path, headers) => request(new URL(path, issuer), { headers: { ...NAVIGATION, ...headers } }),

    open: async (path, headers) => person.follow(await person.get(path, headers)),

    post: (path, fields, headers) =>
      request(new URL(path, issuer), {
        method: 'POST',
        headers: { ...NAVIGATION, origin, ...headers },
        body: new URLSearchParams(pairs(fields)),
      }),

    submit(page, fields, headers) {
      const names = Object.keys(fields);
      const form = page.forms.find((candidate) => names.every((name) => candidate.names.has(name)));
      if (!form) throw new Error(`no form with ${names} on ${describePage(page)}`);
      const kept = form.values.filter(([name]) => !names.includes(name));
      const body = new URLSearchParams([...kept, ...pairs(fields)]);
      const action = new URL(form.action, page.url);
      if (form.method === 'GET') {
        return person.get(new URL(`?${body}`, action), headers);
      }
      return request(action, {
        method: form.method,
        headers: { ...NAVIGATION, origin, referer: page.url.href, ...headers },
        body,
      });
    },

    async follow(page) {
      let current = page;
      for (let hops = 0; hops < 20; hops += 1) {
        if (current.location?.origin !== origin) return current;
        current = await person.get(current.location);
      }
      throw new Error(`redirects without end at ${describePage(current)}`);
    },

    async signIn({ email, password }, path = '/profile') {
      const page = await person.follow(await person.get(path));
      return person.follow(await person.submit(page, { email, password }));
    },

    async authorize(authorizationUrl, { email, password }, decision = 'approve') {
      let page = await person.follow(await person.get(authorizationUrl));
      for (let steps = 0; steps < 5; steps += 1) {
        if (page.location) return page.location;
        if (hasField(page, 'password')) page = await person.submit(page, { email, password });
        else if (hasField(page, 'decision')) page = await person.submit(page, { decision });
        else break;
        page = await person.follow(page);
      }
      throw new Error(`the authorization request ended at ${describePage(page)}`);
    },
  };
  return person;
}

/** @param issuer of the node that is asked, if not that of the person */
export async function isSignedIn(person: Pick<Person, 'get'>, issuer = ''): Promise<boolean> {
  const { status, location } = await person.get(`${issuer}/profile`);
  if (status === 200) return true;
  if (status !== 303 || location?.pathname !== '/login') throw new Error(`the profile page answered ${status}`);
  return false;
}

/** The headers that a browser sends for a navigation from one of our own pages. */
const NAVIGATION = {
  accept: 'text/html,application/xhtml+xml,*/*;q=0.8',
  'sec-fetch-site': 'same-origin',
  'sec-fetch-dest': 'document',
};

const pairs = (fields: Fields): [string, string][] =>
  Object.entries(fields).flatMap(([name, value]) =>
    (typeof value === 'string' ? [value] : value).map((one): [string, string] => [name, one]),
  );

const hasField = (page: Page, name: string): boolean => page.forms.some((form) => form.names.has(name));

const describePage = ({ url, status, html }: Page): string =>
  `${url.pathname} (${status}): ${html
    .replace(/<[^>]*>/g, ' ')
    .replace(/\s+/g, ' ')
    .slice(0, 300)}`;
