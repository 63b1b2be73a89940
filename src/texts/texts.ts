/** The texts for users, by key: ICU messages in `views/texts/<language>.yaml`, which are all checked at the start. */
import { readdirSync, readFileSync } from 'node:fs';
import { IntlMessageFormat } from 'intl-messageformat';
import { parse } from 'yaml';
import type { Instant, Message, Text, Values } from '../base/message.ts';

const TAGS = ['a', 'bdi', 'strong', 'code'] as const;
/** The attributes of the links in a message. */
type Attributes = { readonly [tag in 'a']?: Readonly<Record<string, string>> };

interface Tagged {
  readonly tag: (typeof TAGS)[number];
  readonly attributes: Readonly<Record<string, string>>;
  readonly parts: readonly Part[];
}

/** A piece of a message with markup, as `partials/rich` prints it. */
type Part = string | Instant | Tagged;

/** The texts in one language. Called with a key or a message, it returns plain text. */
export interface Texts {
  /** @throws Error if there is no such key, or a value is missing. */
  (what: Text, values?: Values): string;
  /** Returns the parts of a message with markup. `attributes` contains the attributes of the links in it. */
  parts(what: Text, values?: Values, attributes?: Attributes): readonly Part[];
  /** Returns the parts of a text, a time, or a list of both. Only messages are translated. */
  shown(what: Text | Instant | readonly (Text | Instant)[]): readonly Part[];
  /** Like `shown`, as plain text. */
  plain(what: Text): string;
  /** For example `21 Nov 2026, 04:23 UTC`: to the minute, because the time zone is unknown. */
  moment(time: Instant): string;
  /** The language tag, as in the attribute `lang` and in the name of the file. */
  readonly language: string;
  /** For `Intl`. */
  readonly locale: string;
}

/** A text that the operator has set: one for all languages, or one per language. */
export type OwnText = string | Readonly<Record<string, string>>;

/** Returns an operator's text in this language; if it is missing, in English; otherwise the first one. */
export const ownText = (text: OwnText, language = 'en'): string =>
  typeof text === 'string' ? text : (text[language] ?? text.en ?? Object.values(text).find(Boolean) ?? '');

/** Returns a plain text unchanged, and a message in English: for logs and operators. */
export const inEnglish = (text: Text): string => textsFor('en').plain(text);

/** A problem that operators read in English, and that pages print in the language of their reader. */
export const problemOf = <Code extends string>(code: Code, text: Message) => ({ code, message: inEnglish(text), text });

type Tree = Readonly<Record<string, Readonly<Record<string, string>>>>;
type Compiled = ReadonlyMap<string, IntlMessageFormat>;

type Installed = Map<string, { readonly texts: Texts; readonly compiled: Compiled }>;

const installed: Installed = new Map();

/** Reads the files at the first use, because most operator commands print no text. */
function loaded(): Installed {
  if (installed.size > 0) return installed;
  const directory = new URL('../../views/texts/', import.meta.url);
  // Read English first, because the texts of the other languages must have the same keys.
  const names = new Set(['en.yaml', ...readdirSync(directory)]);
  for (const name of names) {
    const source = readFileSync(new URL(name, directory), 'utf8');
    addLanguage(name.replace(/\.yaml$/, ''), parse(source));
  }
  return installed;
}

/** The tags of all languages, English first. The first call reads and checks all texts. */
export const languages = (): readonly string[] => [...loaded().keys()];

/** True if this version has no text with this key: a later version may have stored the message. */
export const isUnknown = ({ key }: Message): boolean => !loaded().get('en')?.compiled.has(key);

/** Returns the texts in this language; in English if the language does not exist. */
export function textsFor(language = 'en'): Texts {
  const found = loaded().get(language) ?? installed.get('en');
  if (!found) throw new Error('there are no texts in English');
  return found.texts;
}

/**
 * Adds a language.
 *
 * @param tree messages by page and key, as in a file of `views/texts`
 * @returns a function that removes the language, for tests
 * @throws Error that lists every problem: a text is no ICU message, or its placeholders differ from the English text
 */
export function addLanguage(language: string, tree: Tree): () => boolean {
  const sources = new Map<string, string>();
  for (const [page, texts] of Object.entries(tree)) {
    for (const [name, text] of Object.entries(texts)) sources.set(`${page}.${name}`, text);
  }
  const locale = sources.get('language.locale') ?? language;
  const english = installed.get('en')?.compiled;
  const compiled = new Map<string, IntlMessageFormat>();
  const problems: string[] = [];
  for (const key of english?.keys() ?? []) if (!sources.has(key)) problems.push(`no ${key}`);
  for (const [key, source] of sources) {
    try {
      const made = new IntlMessageFormat(source, locale, IN_UTC);
      compiled.set(key, made);
      const own = slotsOf(made);
      problems.push(...forbiddenIn(own).map((slot) => `${key} must not have ${slot}`));
      const wanted = english && `${slotsOf(english.get(key))}`;
      if (wanted !== undefined && !english?.has(key)) problems.push(`${key} is not in English`);
      else if (wanted !== undefined && wanted !== `${own}`) problems.push(`${key} has ${own} instead of ${wanted}`);
    } catch (error) {
      problems.push(`${key}: ${error instanceof Error ? error.message : error}`);
    }
  }
  if (problems.length > 0) throw new Error(`texts in ${language}: ${problems.join('; ')}`);
  installed.set(language, { compiled, texts: createTexts(language, locale, compiled) });
  return () => installed.delete(language);
}

/** Returns the placeholders of a message: `{name}`, `<tag>`, and `{name: choices}` for a `select`. */
function slotsOf(made: IntlMessageFormat | undefined): string[] {
  const walk = (elements: ReturnType<IntlMessageFormat['getAst']>): string[] =>
    elements.flatMap((element) => {
      if ('children' in element) return [`<${element.value}>`, ...walk(element.children)];
      if (!('options' in element)) return 'value' in element && element.type !== LITERAL ? [`{${element.value}}`] : [];
      // Leave out the choices of a plural, which differ between languages.
      const choices = 'pluralType' in element ? '' : `: ${Object.keys(element.options).sort().join('|')}`;
      const inner = Object.values(element.options).flatMap(({ value }) => walk(value));
      return [`{${element.value}${choices}}`, ...inner];
    });
  return [...new Set(made && walk(made.getAst()))].sort();
}

/** For `{day, date, medium}`: use UTC, because the time zone of the server is not that of its users. */
const IN_UTC = { date: { medium: { timeZone: 'UTC' } } };

/** The value of `TYPE.literal` in the parser. */
const LITERAL = 0;

/** Returns wrongly used names: an argument must not have the name of a tag, because both are values of the message. */
const forbiddenIn = (slots: readonly string[]): string[] =>
  slots.filter((slot) => TAGS.some((tag) => tag === slot.slice(1, -1)) !== slot.startsWith('<'));

function createTexts(language: string, locale: string, compiled: Compiled): Texts {
  const day = new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeZone: 'UTC' });
  const moment = ({ iso }: Instant): string => `${day.format(new Date(iso))}, ${iso.slice(11, 16)} UTC`;

  function parts(what: Text, values?: Values, attributes: Attributes = {}): readonly Part[] {
    if (typeof what !== 'string') return parts(what.key, what.values, attributes);
    const found = compiled.get(what);
    if (!found) throw new Error(`there is no text ${what}`);
    const given: Record<string, unknown> = {};
    for (const [name, value] of Object.entries(values ?? {})) {
      given[name] = typeof value === 'object' && 'key' in value ? parts(value) : value;
    }
    for (const tag of TAGS) {
      given[tag] = (inner: unknown[]) => {
        const own = tag === 'a' ? attributes.a : {};
        if (!own) throw new Error(`${what} needs the attributes of its link`);
        return { tag, attributes: own, parts: inner.flat() };
      };
    }
    return found.formatToParts<unknown>(given).flatMap(({ value }) => value as Part | Part[]);
  }

  const textOf = (part: Part): string => {
    if (typeof part === 'string') return part;
    return 'iso' in part ? moment(part) : part.parts.map(textOf).join('');
  };
  const shown: Texts['shown'] = (what) =>
    [what].flat().flatMap((one) => (typeof one === 'object' && 'key' in one ? parts(one) : [one]));
  const translate = (what: Text, values?: Values): string => parts(what, values, { a: {} }).map(textOf).join('');
  const plain = (what: Text): string => (typeof what === 'string' ? what : translate(what));
  return Object.assign(translate, { parts, shown, plain, moment, language, locale });
}
