/** The rules for a redirect URI, so that only this client's own pages ever receive its codes. */
import type { Problem } from '../base/refusal.ts';

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

/** `native`: a public client on the user's own device (RFC 8252), with rules of its own. */
export interface RedirectUriOptions {
  readonly native: boolean;
}

/** Returns the first problem of a redirect URI, or undefined if it may be registered. */
export function redirectUriProblem(uri: string, { native }: RedirectUriOptions): Problem<RedirectUriCode> | undefined {
  if (uri === '') return problem('blank', 'Enter a redirect URI or remove this row.');
  if (uri.length >= LENGTH_LIMIT) {
    return problem('too_long', `Use fewer than ${LENGTH_LIMIT} characters.`);
  }
  const foreign = FOREIGN_CHARACTER.exec(uri)?.[0];
  if (foreign !== undefined) return problem('character', foreignCharacterMessage(uri, foreign));
  if (uri.includes('*')) {
    return problem('wildcard', 'Replace the * : list each redirect URI in full, one per row.');
  }
  if (uri.includes('#')) return problem('fragment', 'Remove the # and everything after it.');
  if (ESCAPED_CONTROL.test(uri)) {
    return problem('escape', 'Remove the escaped control character (such as %00 or %0A).');
  }
  if (BROKEN_ESCAPE.test(uri)) {
    return problem('escape', 'Write %25 for a percent sign that does not start an escape like %2F.');
  }
  const parsed = URL.parse(uri);
  if (parsed === null) {
    return problem('not_a_url', 'Write a complete URL, such as https://app.example/callback.');
  }
  return schemeProblem(uri, parsed, native) ?? partsProblem(uri, parsed);
}

/** Returns probable mistakes in a URI that has no problem. */
export function redirectUriWarnings(uri: string, { native }: RedirectUriOptions): Problem<RedirectUriWarningCode>[] {
  const parsed = new URL(uri);
  const warnings: Problem<RedirectUriWarningCode>[] = [];
  if (parsed.protocol === 'http:' && !isLoopback(parsed.hostname)) {
    const message = 'Codes travel unencrypted over http://. Use https:// outside of tests.';
    warnings.push({ code: 'plain_http', message });
  }
  if (native && parsed.hostname === 'localhost') {
    // RFC 8252 §8.3: the name may resolve to another interface, or not at all.
    const message = 'Prefer http://127.0.0.1 or http://[::1] to the name localhost.';
    warnings.push({ code: 'localhost_name', message });
  }
  return warnings;
}

const LENGTH_LIMIT = 2000;

/** Anything outside RFC 3986: spaces, controls, backslashes, quotes, braces, all non-ASCII. */
const FOREIGN_CHARACTER = /[^A-Za-z0-9\-._~:/?#[\]@!$&'()*+,;=%]/u;
const ESCAPED_CONTROL = /%(?:[01][0-9A-F]|7F)/i;
const BROKEN_ESCAPE = /%(?![0-9A-F]{2})/i;
const DOT_SEGMENT = /(?:^|\/)(?:\.|%2e){1,2}(?=\/|$)/i;

/** The parameters of authorization responses (RFC 6749 §4.1.2, RFC 9207 §2). */
export const RESPONSE_PARAMETERS = new Set(['code', 'state', 'iss', 'error', 'error_description', 'error_uri']);

/** The only loopback hosts for which oidc-provider ignores the port (RFC 8252 §7.3). */
const NATIVE_LOOPBACKS = new Set(['127.0.0.1', '[::1]', 'localhost']);

const problem = (code: RedirectUriCode, message: string): Problem<RedirectUriCode> => ({
  code,
  message,
});

function schemeProblem(uri: string, parsed: URL, native: boolean) {
  const isOnDevice = NATIVE_LOOPBACKS.has(parsed.hostname);
  switch (parsed.protocol) {
    case 'https:':
      if (!native || !isOnDevice) return undefined;
      return problem('loopback', 'Write http:// for a loopback address of a native client.');
    case 'http:':
      if (!native || isOnDevice) return undefined;
      return problem(
        'loopback',
        'A native client may use http:// only with 127.0.0.1 or [::1]. Use https:// for other hosts.',
      );
    default:
      if (!native) return problem('scheme', 'Start it with https:// (or http:// for tests).');
      // RFC 8252 §7.1: a reversed domain name that the app's maker controls, so it has a dot.
      if (!parsed.protocol.includes('.') || !uri.startsWith('/', parsed.protocol.length)) {
        return problem(
          'private_scheme',
          'Write a private-use scheme as a reversed domain name of yours and a slash, ' +
            'such as com.example.app:/callback.',
        );
      }
      return undefined;
  }
}

function partsProblem(uri: string, parsed: URL) {
  const [beforeQuery = ''] = uri.split('?');
  const authority = /^[^:]+:\/\/([^/]*)/.exec(beforeQuery);
  if (authority?.[1]?.includes('@')) {
    return problem('userinfo', 'Remove the user name and password before the @.');
  }
  if (DOT_SEGMENT.test(beforeQuery.slice(authority?.[0].length ?? 0))) {
    return problem('dot_segment', `Write the path without . and .. segments: ${parsed.href}`);
  }
  const taken = [...parsed.searchParams.keys()].find((name) => RESPONSE_PARAMETERS.has(name));
  if (taken !== undefined) {
    return problem('response_parameter', `Rename the parameter "${taken}": our answer uses it.`);
  }
  // The registered URI must be exactly the text that is compared and that browsers open. Only an
  // origin may lack its slash, because browsers add it.
  const origin = `${parsed.protocol}//${parsed.host}${parsed.search}`;
  if (uri !== parsed.href && uri !== origin) return problem('spelling', spellingMessage(uri, parsed));
  return undefined;
}

function spellingMessage(uri: string, parsed: URL): string {
  const [, scheme = '', host = '', port] = /^([^:]+):\/\/([^/:?]*)(:\d+)?/.exec(uri) ?? [];
  const lowered = `${scheme}${host}`.toLowerCase() !== `${scheme}${host}`;
  if (lowered) return `Write the scheme and the host in lower case: ${parsed.href}`;
  if (port !== undefined && parsed.port === '') {
    return `Leave out the default port ${port}: ${parsed.href}`;
  }
  return `Write it the way browsers send it: ${parsed.href}`;
}

function foreignCharacterMessage(uri: string, character: string): string {
  const parsed = URL.parse(uri);
  if (parsed && /[^\0-\x7f]/.test(character) && parsed.hostname.includes('xn--')) {
    return `Write a name outside of ASCII in its encoded form: ${parsed.href}`;
  }
  if (/[\s\p{C}]/u.test(character)) {
    const point = character.codePointAt(0)?.toString(16).toUpperCase().padStart(4, '0');
    return `Remove the space or invisible character (U+${point}).`;
  }
  return `Percent-encode the character ${character} : ${encodeURIComponent(character)}`;
}

const isLoopback = (hostname: string): boolean => /^(?:127\..*|\[::1\]|(?:.*\.)?localhost)$/.test(hostname);
