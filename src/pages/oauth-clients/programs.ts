/** Ready-to-run programs for confidential clients, made from the templates of `views/programs/`. */
import { readFileSync } from 'node:fs';
import ejs from 'ejs';
import { ENDPOINT } from '../../provider/endpoints.ts';
import type { ClientSnippet } from './client-view.ts';

/** What every program is told about its client. */
export interface ProgramValues {
  readonly issuer: string;
  readonly clientId: string;
  /** One that a program can listen at: see `listensAt`. */
  readonly redirectUri: string;
  /** Absent if the operator names no API. */
  readonly api: { readonly graphqlUrl: string; readonly exampleQuery: string } | undefined;
}

/** Where a program listens. */
interface Listening {
  readonly host: string;
  readonly port: string;
  readonly path: string;
}

/** Registered for a client that has no redirect URI a program can listen at. */
export const SUGGESTED_REDIRECT_URI = 'http://127.0.0.1:4000/callback';

/**
 * Where a program on the person's own computer can wait for the code, or undefined. Ports below 1024
 * are for the administrator, and a path and nothing after it is what all libraries send unchanged.
 */
export function listensAt(redirectUri: string): Listening | undefined {
  const [, host = '', port = '', path = ''] =
    /^http:\/\/(127(?:\.\d+){3}|localhost|\[::1\]):(\d+)(\/[^?]*)$/.exec(redirectUri) ?? [];
  if (Number(port) < 1024) return undefined;
  return { host: host.replace(/[[\]]/g, ''), port, path };
}

/** In single quotes of a shell. */
export const inShell = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

/** In single quotes of JavaScript and of Python: both read everything that JSON escapes. */
const inSingleQuotes = (text: string): string =>
  `'${JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")}'`;

/** In double quotes of Go, Java and C#: all of them read everything that JSON escapes. */
const inDoubleQuotes = (text: string): string => JSON.stringify(text);

/** In single quotes of PHP and of Ruby, where nothing else is special. */
const inPlainQuotes = (text: string): string => `'${text.replace(/[\\']/g, '\\$&')}'`;

/** RFC 3986 §2.3: only unreserved characters stay, so that neither a shell nor curl reads the rest. */
const percentEncoded = (text: string): string =>
  encodeURIComponent(text).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );

const PATHS = {
  authorize: ENDPOINT.authorization,
  token: ENDPOINT.token,
  revoke: ENDPOINT.revocation,
} as const;

const TEMPLATES = new URL('../../../views/programs/', import.meta.url);

/** `quote` makes a string literal of the program's language, `comment` begins one of its comments. */
type Language = readonly [
  name: string,
  file: string,
  quote: (text: string) => string,
  comment: string,
];

/** In the order of the page. */
const LANGUAGES: readonly Language[] = [
  ['curl', 'try.sh', inShell, '#'],
  ['Node', 'try.mjs', inSingleQuotes, '//'],
  ['Python', 'try.py', inSingleQuotes, '#'],
  ['Go', 'try.go', inDoubleQuotes, '//'],
  ['Java', 'Try.java', inDoubleQuotes, '//'],
  ['PHP', 'try.php', inPlainQuotes, '//'],
  ['C#', 'try.cs', inDoubleQuotes, '//'],
  ['Ruby', 'try.rb', inPlainQuotes, '#'],
];

// Read once, when the service starts: a missing or malformed template stops the start.
const preparation = compile('preparation.ejs', String);
const programs = LANGUAGES.map(([name, file, quote, comment]) => ({
  name,
  program: compile(`${file}.ejs`, quote),
  preparation: preparation({ comment }),
}));

/**
 * Returns one program for each language. Each reads the secret from the environment variable
 * CLIENT_SECRET, prints the address to open and waits at the redirect URI for the browser. It exits
 * with a code other than 0 if something is not as it should be.
 *
 * @throws TypeError for a redirect URI that no program can listen at.
 */
export function clientSnippets(values: ProgramValues): ClientSnippet[] {
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
  return programs.map(({ name, program, preparation }) => ({
    name,
    code: program({ ...locals, preparation }),
  }));
}

/**
 * Compiles a template in which `<%=` prints a value as a string literal of the program's language, and
 * `<%-` prints it as it is.
 */
function compile(file: string, quote: (text: string) => string): ejs.TemplateFunction {
  return ejs.compile(readFileSync(new URL(file, TEMPLATES), 'utf8'), { escape: quote });
}
