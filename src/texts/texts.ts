/** Loads and formats the texts for users, which are ICU messages in `views/texts/<language>.yaml`. */
import { readdirSync, readFileSync } from 'node:fs';
import { IntlMessageFormat } from 'intl-messageformat';
import { parse } from 'yaml';
import type { Instant, Message, Text, Values } from '../base/message.ts';

const TAGS = ['a', 'bdi', 'strong', 'code'] as const;
type Attributes = { readonly [tag in 'a']?: Readonly<Record<string, string>> };

interface Tagged {
  readonly tag: (typeof TAGS)[number];
  readonly attributes: Readonly<Record<string, string>>;
  readonly parts: readonly Part[];
}

/** A piece of a message with markup, which the view `partials/rich` prints. */
type Part = string | Instant | Tagged;

/** Formats texts in one language. */
export interface Texts {
  /** Returns plain text. @throws Error if the key is unknown, or a value is missing */
  (what: Text, values?: Values): string;
  /** Returns the parts of a message with markup. @param attributes those of the links in the message */
  parts(what: Text, values?: Values, attributes?: Attributes): readonly Part[];
  /** Formats a text, a time, or a list of texts and times as parts with markup. Plain strings are not translated. */
  shown(what: Text | Instant | readonly (Text | Instant)[]): readonly Part[];
  /** Like `shown`, but returns plain text. */
  plain(what: Text): string;
  /** Returns a text such as `21 Nov 2026, 04:23 UTC`. */
  moment(time: Instant): string;
  /** The language tag, for the attribute `lang`. */
  readonly language: string;
  readonly locale: string;
}

/** A text from the operator's settings, which is one string for all languages, or one for each language. */
export type OwnText = string | Readonly<Record<string, string>>;

/** Returns the text in the language, or else in English, or else in the first language that has the text. */
export const ownText = (text: OwnText, language = 'en'): string =>
  typeof text === 'string' ? text : (text[language] ?? text.en ?? Object.values(text).find(Boolean) ?? '');

/** Translates a message into English, for logs and operators. Returns a string unchanged. */
export const inEnglish = (text: Text): string => textsFor('en').plain(text);

/** Creates a problem that operators read in English and users in their language. */
export const problemOf = <Code extends string>(code: Code, text: Message) => ({ code, message: inEnglish(text), text });

type Tree = Readonly<Record<string, Readonly<Record<string, string>>>>;
/** The placeholders of each text by its key: those of all languages must be the same. */
type Placeholders = ReadonlyMap<string, string>;

type Installed = Map<string, { readonly texts: Texts; readonly placeholders: Placeholders }>;

const installed: Installed = new Map();

/** Reads the files when texts are first needed, because most operator commands need no texts. */
function loaded(): Installed {
  if (installed.size > 0) return installed;
  const directory = new URL('../../views/texts/', import.meta.url);
  // Read English first, because the texts of other languages are compared with the English texts.
  const names = new Set(['en.yaml', ...readdirSync(directory)]);
  for (const name of names) {
    const source = readFileSync(new URL(name, directory), 'utf8');
    addLanguage(name.replace(/\.yaml$/, ''), parse(source));
  }
  return installed;
}

/** Returns the tags of all languages, English first. The first call reads and checks all texts. */
export const languages = (): readonly string[] => [...loaded().keys()];

/** True if the message, or a message in its values, has no text: it may come from a node of a later version. */
export const isUnknown = ({ key, values = {} }: Message): boolean =>
  !loaded().get('en')?.placeholders.has(key) ||
  Object.values(values).some((value) => typeof value === 'object' && 'key' in value && isUnknown(value));

/** Returns the English texts if there is no such language. */
export function textsFor(language = 'en'): Texts {
  const found = loaded().get(language) ?? installed.get('en');
  if (!found) throw new Error('there are no texts in English');
  return found.texts;
}

/**
 * @param tree the messages by page and key, as in a file of `views/texts`
 * @returns a function that removes the language again, for tests
 * @throws Error that lists each text which is no ICU message, or whose placeholders differ from the English text
 */
export function addLanguage(language: string, tree: Tree): () => boolean {
  const sources = new Map<string, string>();
  for (const [page, texts] of Object.entries(tree)) {
    for (const [name, text] of Object.entries(texts)) sources.set(`${page}.${name}`, text);
  }
  const locale = sources.get('language.locale') ?? language;
  const english = installed.get('en')?.placeholders;
  const placeholders = new Map<string, string>();
  const problems: string[] = [];
  for (const key of english?.keys() ?? []) if (!sources.has(key)) problems.push(`no ${key}`);
  for (const [key, source] of sources) {
    try {
      const own = slotsOf(new IntlMessageFormat(source, locale, IN_UTC));
      placeholders.set(key, `${own}`);
      problems.push(...forbiddenIn(own).map((slot) => `${key} must not have ${slot}`));
      const wanted = english?.get(key);
      if (english && wanted === undefined) problems.push(`${key} is not in English`);
      else if (english && wanted !== `${own}`) problems.push(`${key} has ${own} instead of ${wanted}`);
    } catch (error) {
      problems.push(`${key}: ${error instanceof Error ? error.message : error}`);
    }
  }
  if (problems.length > 0) throw new Error(`texts in ${language}: ${problems.join('; ')}`);
  installed.set(language, { placeholders, texts: createTexts(language, locale, sources) });
  return () => installed.delete(language);
}

/** Returns the placeholders of a message in the form `{name}`, `<tag>`, or `{name: choices}` for a `select`. */
function slotsOf(made: IntlMessageFormat): string[] {
  const walk = (elements: ReturnType<IntlMessageFormat['getAst']>): string[] =>
    elements.flatMap((element) => {
      if ('children' in element) return [`<${element.value}>`, ...walk(element.children)];
      if (!('options' in element)) return 'value' in element && element.type !== LITERAL ? [`{${element.value}}`] : [];
      // Omit the plural forms of the text, because they differ between languages.
      const choices = 'pluralType' in element ? '' : `: ${Object.keys(element.options).sort().join('|')}`;
      const inner = Object.values(element.options).flatMap(({ value }) => walk(value));
      return [`{${element.value}${choices}}`, ...inner];
    });
  return [...new Set(walk(made.getAst()))].sort();
}

/** Formats `{day, date, medium}` in UTC, because users do not have the time zone of the server. */
const IN_UTC = { date: { medium: { timeZone: 'UTC' } } };

/** The value of `TYPE.literal` in the ICU message parser. */
const LITERAL = 0;

/** Returns placeholders that have the name of a known tag, and unknown tags. A message must have neither. */
const forbiddenIn = (slots: readonly string[]): string[] =>
  slots.filter((slot) => TAGS.some((tag) => tag === slot.slice(1, -1)) !== slot.startsWith('<'));

function createTexts(language: string, locale: string, sources: ReadonlyMap<string, string>): Texts {
  /** Those that were used: all of them would be 100,000 objects, which V8's garbage collector visits. */
  const compiled = new Map<string, IntlMessageFormat>();
  const day = new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeZone: 'UTC' });
  const moment = ({ iso }: Instant): string => `${day.format(new Date(iso))}, ${iso.slice(11, 16)} UTC`;

  function parts(what: Text, values?: Values, attributes: Attributes = {}): readonly Part[] {
    if (typeof what !== 'string') return parts(what.key, what.values, attributes);
    const source = sources.get(what);
    if (source === undefined) throw new Error(`there is no text ${what}`);
    const found = compiled.get(what) ?? new IntlMessageFormat(source, locale, IN_UTC);
    compiled.set(what, found);
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
