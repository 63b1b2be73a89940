/** The rules for a redirect URI, so that only the client's own pages ever receive its codes. */
import { type Message, message, type Values } from '../base/message.ts';
import type { Problem } from '../base/refusal.ts';
import { problemOf } from '../texts/texts.ts';

export type RedirectUriCode =
  | 'blank'
  | 'too_long'
  | 'character'
  | 'not_a_url'
  | 'wildcard'
  | 'fragment'
  | 'escape'
  | 'scheme'
  | 'private_scheme'
  | 'loopback'
  | 'userinfo'
  | 'dot_segment'
  | 'response_parameter'
  | 'spelling';

type RedirectUriWarningCode = 'plain_http' | 'localhost_name';

/** `native` is true for public clients on the user's own device, whose redirect URIs have special rules (RFC 8252). */
export interface RedirectUriOptions {
  readonly native: boolean;
}

/** Returns the first problem of a redirect URI; undefined if the URI may be registered. */
export function redirectUriProblem(uri: string, { native }: RedirectUriOptions): Problem<RedirectUriCode> | undefined {
  if (uri === '') return problem('blank');
  if (uri.length >= LENGTH_LIMIT) return problem('too_long', { max: LENGTH_LIMIT });
  const foreign = FOREIGN_CHARACTER.exec(uri)?.[0];
  if (foreign !== undefined) return problemOf('character', foreignCharacterText(uri, foreign));
  if (uri.includes('*')) return problem('wildcard');
  if (uri.includes('#')) return problem('fragment');
  if (ESCAPED_CONTROL.test(uri)) return problemOf('escape', message('redirect-uri.control'));
  if (BROKEN_ESCAPE.test(uri)) return problem('escape');
  const parsed = URL.parse(uri);
  if (parsed === null) return problem('not_a_url');
  return schemeProblem(uri, parsed, native) ?? partsProblem(uri, parsed);
}

export function redirectUriWarnings(uri: string, { native }: RedirectUriOptions): Problem<RedirectUriWarningCode>[] {
  const parsed = new URL(uri);
  const isPlain = parsed.protocol === 'http:' && !isLoopback(parsed.hostname);
  // RFC 8252 §8.3: the name `localhost` may resolve to another interface, or not at all.
  const isNamed = native && parsed.hostname === 'localhost';
  return [...(isPlain ? [problem('plain_http')] : []), ...(isNamed ? [problem('localhost_name')] : [])];
}

const LENGTH_LIMIT = 2000;

/** Any character that RFC 3986 does not allow: spaces, controls, backslashes, quotes, braces, all non-ASCII. */
const FOREIGN_CHARACTER = /[^A-Za-z0-9\-._~:/?#[\]@!$&'()*+,;=%]/u;
const ESCAPED_CONTROL = /%(?:[01][0-9A-F]|7F)/i;
const BROKEN_ESCAPE = /%(?![0-9A-F]{2})/i;
const DOT_SEGMENT = /(?:^|\/)(?:\.|%2e){1,2}(?=\/|$)/i;

/** The parameters of authorization responses (RFC 6749 §4.1.2, RFC 9207 §2). */
export const RESPONSE_PARAMETERS = new Set(['code', 'state', 'iss', 'error', 'error_description', 'error_uri']);

/** The only loopback hosts for which oidc-provider ignores the port (RFC 8252 §7.3). */
const NATIVE_LOOPBACKS = new Set(['127.0.0.1', '[::1]', 'localhost']);

const problem = <Code extends RedirectUriCode | RedirectUriWarningCode>(code: Code, values?: Values) =>
  problemOf(code, message(`redirect-uri.${code}`, values));

function schemeProblem(uri: string, parsed: URL, native: boolean) {
  const isOnDevice = NATIVE_LOOPBACKS.has(parsed.hostname);
  switch (parsed.protocol) {
    case 'https:':
      return native && isOnDevice ? problemOf('loopback', message('redirect-uri.loopback-https')) : undefined;
    case 'http:':
      return native && !isOnDevice ? problem('loopback') : undefined;
    default: {
      if (!native) return problem('scheme');
      // RFC 8252 §7.1: the scheme is a reversed domain name that the app's maker controls, so it contains a dot.
      const isReversedName = parsed.protocol.includes('.') && uri.startsWith('/', parsed.protocol.length);
      return isReversedName ? undefined : problem('private_scheme');
    }
  }
}

function partsProblem(uri: string, parsed: URL) {
  const [beforeQuery = ''] = uri.split('?');
  const authority = /^[^:]+:\/\/([^/]*)/.exec(beforeQuery);
  if (authority?.[1]?.includes('@')) return problem('userinfo');
  if (DOT_SEGMENT.test(beforeQuery.slice(authority?.[0].length ?? 0))) {
    return problem('dot_segment', { uri: parsed.href });
  }
  const taken = [...parsed.searchParams.keys()].find((name) => RESPONSE_PARAMETERS.has(name));
  if (taken !== undefined) return problem('response_parameter', { name: taken });
  // The registered text must be what browsers send, because it is compared exactly. Only an origin may omit its slash,
  // which browsers add.
  const origin = `${parsed.protocol}//${parsed.host}${parsed.search}`;
  if (uri !== parsed.href && uri !== origin) return problemOf('spelling', spellingText(uri, parsed));
  return undefined;
}

function spellingText(written: string, { href: uri, port: kept }: URL): Message {
  const [, scheme = '', host = '', port] = /^([^:]+):\/\/([^/:?]*)(:\d+)?/.exec(written) ?? [];
  const lowered = `${scheme}${host}`.toLowerCase() !== `${scheme}${host}`;
  if (lowered) return message('redirect-uri.lower_case', { uri });
  if (port !== undefined && kept === '') return message('redirect-uri.default_port', { port, uri });
  return message('redirect-uri.spelling', { uri });
}

function foreignCharacterText(uri: string, character: string): Message {
  const parsed = URL.parse(uri);
  if (parsed && /[^\0-\x7f]/.test(character) && parsed.hostname.includes('xn--')) {
    return message('redirect-uri.not_ascii', { uri: parsed.href });
  }
  if (/[\s\p{C}]/u.test(character)) {
    const point = character.codePointAt(0)?.toString(16).toUpperCase().padStart(4, '0') ?? '';
    return message('redirect-uri.invisible', { point });
  }
  return message('redirect-uri.character', { character, encoded: encodeURIComponent(character) });
}

const isLoopback = (hostname: string): boolean => /^(?:127\..*|\[::1\]|(?:.*\.)?localhost)$/.test(hostname);
