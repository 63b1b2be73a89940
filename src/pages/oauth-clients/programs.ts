/** Example programs for confidential clients, from the templates in `views/programs/`. */
import { readFileSync } from 'node:fs';
import ejs from 'ejs';
import { ENDPOINT } from '../../provider/endpoints.ts';

export interface ProgramValues {
  readonly issuer: string;
  readonly clientId: string;
  /** Must be a URI at which a program can listen (see `listensAt`). */
  readonly redirectUri: string;
  /** Undefined if the settings name no API. */
  readonly api: { readonly graphqlUrl: string; readonly exampleQuery: string } | undefined;
}

/** The redirect URI to suggest if a program can listen at none of the client's redirect URIs. */
export const SUGGESTED_REDIRECT_URI = 'http://127.0.0.1:4000/callback';

/**
 * Returns undefined if a program on the user's computer cannot wait for the code at this URI. Also returns undefined
 * for ports below 1024, which only administrators may use, and for URIs with a query, which some libraries change.
 */
export function listensAt(
  redirectUri: string,
): { readonly host: string; readonly port: string; readonly path: string } | undefined {
  const [, host = '', port = '', path = ''] =
    /^http:\/\/(127(?:\.\d+){3}|localhost|\[::1\]):(\d+)(\/[^?]*)$/.exec(redirectUri) ?? [];
  if (Number(port) < 1024) return undefined;
  return { host: host.replace(/[[\]]/g, ''), port, path };
}

export const inShell = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

/** Returns a string literal of JavaScript and Python, which understand all escapes of JSON. */
const inSingleQuotes = (text: string): string =>
  `'${JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")}'`;

/** Encodes all characters except unreserved ones (RFC 3986 §2.3), which are safe in a shell and for curl. */
const percentEncoded = (text: string): string =>
  encodeURIComponent(text).replace(/[!'()*]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`);

const PATHS = {
  authorize: ENDPOINT.authorization,
  token: ENDPOINT.token,
  revoke: ENDPOINT.revocation,
} as const;

const TEMPLATES = new URL('../../../views/programs/', import.meta.url);

/** `quote` makes a string literal of the language, and `comment` begins a comment. */
type Language = readonly [name: string, file: string, quote: (text: string) => string, comment: string];

const LANGUAGES: readonly Language[] = [
  ['curl', 'try.sh', inShell, '#'],
  ['Node', 'try.mjs', inSingleQuotes, '//'],
  ['Python', 'try.py', inSingleQuotes, '#'],
];

/** In a template, `<%=` prints a string literal of the language, and `<%-` prints a value unchanged. */
const compile = (file: string, quote: (text: string) => string): ejs.TemplateFunction =>
  ejs.compile(readFileSync(new URL(file, TEMPLATES), 'utf8'), { escape: quote });

// Compile the templates at the start, so that a missing or malformed template makes the start fail.
const preparation = compile('preparation.ejs', String);
const programs = LANGUAGES.map(([name, file, quote, comment]) => ({
  name,
  file,
  program: compile(`${file}.ejs`, quote),
  preparation: preparation({ comment }),
}));

/**
 * Returns one program for each language. A program reads the secret from the environment variable CLIENT_SECRET, prints
 * the URL to open, and waits for the browser at the redirect URI. After an unexpected answer, it exits with a code
 * other than 0.
 *
 * @throws TypeError for a redirect URI at which no program can listen
 */
export function clientSnippets(values: ProgramValues) {
  const { issuer, clientId, redirectUri, api } = values;
  const listening = listensAt(redirectUri);
  if (!listening) throw new TypeError('nothing can listen there');
  const { host, port, path } = listening;
  const locals = {
    issuer,
    clientId,
    redirectUri,
    host,
    port,
    path,
    address: host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`,
    origin: new URL(redirectUri).origin,
    isPlainHttp: issuer.startsWith('http:'),
    api: api && { url: api.graphqlUrl, request: JSON.stringify({ query: api.exampleQuery }) },
    paths: PATHS,
    percentEncoded,
  };
  return programs.map(({ name, file, program, preparation }) => {
    return { name, file, code: program({ ...locals, preparation }) };
  });
}
