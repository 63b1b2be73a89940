/** What every program has of its client, as text of its language. */
import { ENDPOINT } from '../../../provider/endpoints.ts';

export interface ProgramValues {
  readonly issuer: string;
  readonly clientId: string;
  /** One that a program can listen at: see `listensAt`. */
  readonly redirectUri: string;
  /** Absent where the operator names no API. */
  readonly api: { readonly graphqlUrl: string; readonly exampleQuery: string } | undefined;
}

/** Where a program listens. */
export interface Listening {
  readonly host: string;
  readonly port: string;
  readonly path: string;
}

/** Registered where a client has no address of its own that a program can listen at. */
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

/** @throws TypeError for one that no program can listen at. */
export function listeningOf({ redirectUri }: ProgramValues): Listening {
  const listening = listensAt(redirectUri);
  if (!listening) throw new TypeError('nothing can listen there');
  return listening;
}

export const PATHS = {
  authorize: ENDPOINT.authorization,
  token: ENDPOINT.token,
  revoke: ENDPOINT.revocation,
} as const;

/** What stands above every program. */
export const preparation = (comment: string): string =>
  `\
${comment} Before, in a shell:  read -rs CLIENT_SECRET && export CLIENT_SECRET
${comment} In PowerShell:       $env:CLIENT_SECRET = Read-Host -MaskInput
${comment} With KEEP_TOKENS=1 in the environment the tokens stay good, and are not revoked at the end.`;

/** The body of the request to the API. */
export const requestOf = ({ exampleQuery: query }: NonNullable<ProgramValues['api']>): string =>
  JSON.stringify({ query });

/** In single quotes of JavaScript and of Python: what JSON escapes, both of them read. */
export const inSingleQuotes = (text: string): string =>
  `'${JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")}'`;

/** In double quotes of Go, Java and C#: what JSON escapes, all of them read. */
export const inDoubleQuotes = (text: string): string => JSON.stringify(text);

/** In single quotes of PHP and of Ruby, where nothing else is special. */
export const inPlainQuotes = (text: string): string => `'${text.replace(/[\\']/g, '\\$&')}'`;

export const inShell = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

/** RFC 3986 §2.3: only unreserved characters stay, so that neither a shell nor curl reads the rest. */
export const percentEncoded = (text: string): string =>
  encodeURIComponent(text).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );

export const isPlainHttp = (issuer: string): boolean => issuer.startsWith('http:');
