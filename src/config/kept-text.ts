/** Decides which texts of the settings may be stored in the database: none with a secret. */
import { parse } from 'yaml';
import type { ConfigurationProblem } from './problems.ts';
import { expectationAt, isHeading, knownSettings } from './schema/known-settings.ts';
import type { Settings } from './settings.ts';

const MAX_KEPT_BYTES = 256 * 1024;
/** A shorter text is found in harmless words by chance. */
const MIN_SECRET_LENGTH = 6;
const NAMED_SECRET =
  /(?:passw(?:or)?d|passphrase|secret)["']?[ \t]{0,20}[:=][ \t]{0,20}["']?\S{4}/i;

/** Returns why the text of these settings must not be kept; undefined if it may. */
export function reasonNotToKeep(settings: Settings): string | undefined {
  const text = settings.source?.text;
  if (text === undefined) return 'there is no settings file: every setting has its default';
  if (Buffer.byteLength(text) > MAX_KEPT_BYTES) return 'the file has more than 256 kB';
  // Search the decoded values, too: YAML can write `/` as `\x2f`.
  return secretIn(`${text}\n${JSON.stringify(parse(text), null, 1)}`, settings);
}

function secretIn(text: string, settings: Settings): string | undefined {
  const hasPassword = text.split(/\s+/).some((word) => {
    const [start, end] = [word.indexOf('://'), word.lastIndexOf('@')];
    return start >= 0 && word.slice(start + 3, end + 1).includes(':');
  });
  if (hasPassword) return 'it has a URL with a password';
  const { secrets, senders, signIn, storage, mail } = settings;
  const urls = [storage.databaseUrl, storage.redisUrl, mail?.smtpUrl];
  const passwords = urls.flatMap((url = '') => URL.parse(url)?.password ?? []);
  const values = [
    ...[...secrets.cookieKeys, ...secrets.tokenKeys],
    ...Object.values(senders)
      .flat()
      .map(({ secret }) => secret),
    ...signIn.providers.flatMap(({ clientSecret }) => clientSecret ?? []),
    ...passwords.flatMap((password) => [password, decodeURIComponent(password)]),
  ];
  const hasValue = values.some(
    (value) => value.length >= MIN_SECRET_LENGTH && text.includes(value),
  );
  const hasSecret = hasValue || NAMED_SECRET.test(text) || text.includes('PRIVATE KEY');
  return hasSecret ? 'it has a secret, or what looks like one' : undefined;
}

/** Returns one line for each problem, without values of the file, which may be secrets. */
export const problemLines = (
  problems: readonly ConfigurationProblem[],
  settings: Settings,
): string[] =>
  problems.map(({ path, file, line, message, remedy }) => {
    const [name = ''] = path.split(' ');
    // An unknown name may be a secret in the wrong place.
    const isKnown = knownSettings.has(name) || isHeading(name) || expectationAt(name.split('.'));
    const shown = isKnown || /^(?:[A-Z_]+\b|\/)/.test(path) ? path : 'a name in the file';
    const place = file === undefined ? '' : ` (${file}, line ${line})`;
    const text = `${shown}${place} ${message}; remedy: ${remedy}`;
    return secretIn(text, settings) ? `a problem${place}: see the log of the node` : text;
  });
