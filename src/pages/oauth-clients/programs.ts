/** Ready-to-run programs for confidential clients, made from the templates of `views/programs/`. */
import { readFileSync } from 'node:fs';
import ejs from 'ejs';
import { ENDPOINT } from '../../provider/endpoints.ts';

/** The values that a program's template receives. */
export interface ProgramValues {
  readonly issuer: string;
  readonly clientId: string;
  /** A redirect URI at which a program can listen (see `listensAt`). */
  readonly redirectUri: string;
  /** Undefined if the operator configured no API. */
  readonly api: { readonly graphqlUrl: string; readonly exampleQuery: string } | undefined;
}

interface Listening {
  readonly host: string;
  readonly port: string;
  readonly path: string;
}

/** Suggested if the client has no redirect URI at which a program can listen. */
export const SUGGESTED_REDIRECT_URI = 'http://127.0.0.1:4000/callback';

/**
 * Returns where a program on the user's computer can wait for the code; otherwise undefined. Excludes ports below 1024,
 * which only administrators may use, and URIs with a query, which some libraries change.
 */
export function listensAt(redirectUri: string): Listening | undefined {
  const [, host = '', port = '', path = ''] =
    /^http:\/\/(127(?:\.\d+){3}|localhost|\[::1\]):(\d+)(\/[^?]*)$/.exec(redirectUri) ?? [];
  if (Number(port) < 1024) return undefined;
  return { host: host.replace(/[[\]]/g, ''), port, path };
}

/** Quotes a text for a POSIX shell. */
export const inShell = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

/** Quotes a text for JavaScript and Python, which both understand all escapes of JSON. */
const inSingleQuotes = (text: string): string =>
  `'${JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")}'`;

/** Encodes all but unreserved characters (RFC 3986 §2.3), because only those are safe in a shell and for curl. */
const percentEncoded = (text: string): string =>
  encodeURIComponent(text).replace(/[!'()*]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`);

const PATHS = {
  authorize: ENDPOINT.authorization,
  token: ENDPOINT.token,
  revoke: ENDPOINT.revocation,
} as const;

const TEMPLATES = new URL('../../../views/programs/', import.meta.url);

/** `quote` makes a string literal of the language; `comment` starts a comment. */
type Language = readonly [name: string, file: string, quote: (text: string) => string, comment: string];

/** The languages in the order of the page. */
const LANGUAGES: readonly Language[] = [
  ['curl', 'try.sh', inShell, '#'],
  ['Node', 'try.mjs', inSingleQuotes, '//'],
  ['Python', 'try.py', inSingleQuotes, '#'],
];

/** Compiles a template in which `<%=` prints a string literal of the program's language, and `<%-` a value unchanged. */
const compile = (file: string, quote: (text: string) => string): ejs.TemplateFunction =>
  ejs.compile(readFileSync(new URL(file, TEMPLATES), 'utf8'), { escape: quote });

// Compiled once, at startup: a missing or malformed template makes the start fail.
const preparation = compile('preparation.ejs', String);
const programs = LANGUAGES.map(([name, file, quote, comment]) => ({
  name,
  file,
  program: compile(`${file}.ejs`, quote),
  preparation: preparation({ comment }),
}));

/**
 * Returns one program for each language. Each program reads the secret from the environment variable CLIENT_SECRET,
 * prints the address to open, and waits at the redirect URI for the browser. It exits with a code other than 0 if an
 * answer is unexpected.
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
