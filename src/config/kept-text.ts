/** Decides which texts of the settings may be stored in the database: none with a secret. */
import { parse } from 'yaml';
import { sha256 } from '../base/random-id.ts';
import { comparableSettings, settingsDigest } from './node-settings.ts';
import { ConfigurationProblems } from './problems.ts';
import { expectationAt, isHeading, knownSettings } from './schema/known-settings.ts';
import type { Settings } from './settings.ts';

const MAX_KEPT_BYTES = 256 * 1024;
const MAX_PROBLEMS = 20;
/** A shorter text is found in harmless words by chance. */
const MIN_SECRET_LENGTH = 6;
const NAMED_SECRET =
  /(?:passw(?:or)?d|passphrase|secret)["']?[ \t]{0,20}[:=][ \t]{0,20}["']?\S{4}/i;

/** Returns what the history stores of these settings: without their text if it must not be kept. */
export function historyEntry(settings: Settings) {
  const { text = '' } = settings.source ?? {};
  const notKeptBecause = reasonNotToKeep(settings) ?? null;
  // The hash of a text with a password would let a thief of the database guess the password.
  return notKeptBecause
    ? { text: null, hash: settingsDigest(comparableSettings(settings)), notKeptBecause }
    : { text, hash: sha256(text), notKeptBecause };
}

function reasonNotToKeep(settings: Settings): string | undefined {
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
  const values = [
    ...[...secrets.cookieKeys, ...secrets.tokenKeys],
    ...Object.values(senders).flatMap((list) => list.map(({ secret }) => secret)),
    ...signIn.providers.flatMap(({ clientSecret }) => clientSecret ?? []),
    ...[storage.databaseUrl, storage.redisUrl, mail?.smtpUrl].flatMap(passwordsIn),
  ];
  const hasValue = values.some(
    (value) => value.length >= MIN_SECRET_LENGTH && text.includes(value),
  );
  const hasSecret = hasValue || NAMED_SECRET.test(text) || text.includes('PRIVATE KEY');
  return hasSecret ? 'it has a secret, or what looks like one' : undefined;
}

/** Not with `URL`, which knows neither several hosts nor sockets. Returns each as in the URL, too. */
const passwordsIn = (url = ''): string[] =>
  [/^[a-z+]+:\/\/[^:@]*:(.*)@/, /[?&]password=([^&#]*)/]
    .flatMap((form) => form.exec(url)?.[1] ?? [])
    .flatMap((password) => [password, decodeURIComponent(password)]);

/** Describes why settings were not taken, without values of the file, which may be secrets. */
export function problemLines(error: unknown, settings: Settings): string[] {
  if (!(error instanceof ConfigurationProblems)) return ['its log has the cause'];
  return error.problems.slice(0, MAX_PROBLEMS).map(({ path, file, line, message, remedy }) => {
    const [name = ''] = path.split(' ');
    // An unknown name may be a secret in the wrong place; a variable or a file has no line.
    const isKnown = knownSettings.has(name) || isHeading(name) || expectationAt(name.split('.'));
    const isElsewhere = file === undefined && /^(?:[A-Z_]+\b|\/)/.test(path);
    const shown = isKnown || isElsewhere ? path : 'a name in the file';
    const place = file === undefined ? '' : ` (${file}, line ${line})`;
    const text = `${shown}${place} ${message}; remedy: ${remedy}`;
    return secretIn(text, settings) ? `a problem${place}: see the log of the node` : text;
  });
}
