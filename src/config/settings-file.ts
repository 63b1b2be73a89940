/** Reads the YAML file without validating its settings. */
import { isUtf8 } from 'node:buffer';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { type Document, isMap, isNode, isScalar, isSeq, LineCounter, parseDocument, visit, type YAMLError } from 'yaml';
import { type ConfigurationProblem, ConfigurationProblems } from './problems.ts';
import { isPlainNumber } from './schema/kinds.ts';
import { isHeading } from './schema/known-settings.ts';

/** Paths in the settings file are relative to this directory, which contains package.json. */
export const projectDirectory = fileURLToPath(new URL('../../', import.meta.url));

export const defaultFile = fileURLToPath(new URL('../../config/gatehouse.yaml', import.meta.url));

export type FileContent = Record<string, unknown>;

export interface ReadSettingsFile {
  readonly content: FileContent;
  /** Returns the line of a setting, such as `['server', 'port']`; undefined if the file does not contain it. */
  readonly lineOf: (path: readonly string[]) => number | undefined;
}

/**
 * Returns the settings of `file`, not validated. If the default file is missing, every setting has its default. Any
 * other file must exist.
 * @param text replaces the content of the file
 * @throws ConfigurationProblems if the file cannot be read, is empty, or is not a YAML mapping
 */
export function readSettingsFile(file: string, text?: string): ReadSettingsFile {
  const source = text ?? sourceOf(file);
  if (source === undefined) return { content: {}, lineOf: () => undefined };
  const { value: content, lineOf } = parsed(file, source);
  if (content === null) throw withoutSetting(file);
  if (typeof content !== 'object' || Array.isArray(content)) {
    throw problem({
      path: file,
      message: 'is not a list of settings',
      remedy: 'write settings as `name: value` lines, as config/gatehouse.yaml does',
    });
  }
  // In YAML, a heading with only comments below it is null. Use the defaults for its settings.
  const given = Object.entries(content);
  const settings = given.filter(([name, value]) => value !== null || !isHeading(name));
  if (settings.length === 0 && given.length > 0) throw withoutSetting(file);
  return { content: Object.fromEntries(settings), lineOf };
}

/** The error for a file without settings, perhaps truncated. Default settings would make links lead to localhost. */
const withoutSetting = (file: string): ConfigurationProblems =>
  problem({
    path: file,
    message: 'contains no setting',
    remedy: 'restore the file, perhaps from a full disk; `{}` in it says that every setting has its default',
  });

function sourceOf(file: string): string | undefined {
  let bytes: Buffer;
  try {
    bytes = readFileSync(file);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' && file === defaultFile) return undefined;
    throw problem({
      path: file,
      message: `cannot be read (${code})`,
      remedy: 'name a settings file that exists and that this process may read',
    });
  }
  if (isUtf8(bytes)) return bytes.toString();
  // Bytes that are not UTF-8 become U+FFFD.
  const line = bytes.toString().split('\uFFFD', 1)[0]?.split('\n').length;
  throw problem({
    path: `${file}, line ${line}`,
    message: 'is not in UTF-8',
    remedy: 'save the file in UTF-8: names on pages would otherwise be wrong',
  });
}

function parsed(file: string, source: string): { value: unknown; lineOf: ReadSettingsFile['lineOf'] } {
  const lines = new LineCounter();
  const document = parseDocument(source, { lineCounter: lines, prettyErrors: false });
  // Report only the first error, because further errors are mostly its consequences.
  const [error] = [...document.errors, ...document.warnings];
  if (error !== undefined) {
    const { line, col } = lines.linePos(beginningOf(error, document));
    // Some messages end with the text that was not understood, which may be a password.
    const message = `is not YAML: ${error.message.split(': ', 1)}`;
    throw problem({ path: `${file}, line ${line}, column ${col}`, message, remedy: remedyOf(error) });
  }
  // Keep a number such as `08080` as text, so that it is refused where a number is expected.
  visit(document, {
    Scalar(_, node) {
      if (typeof node.value === 'number' && !isPlainNumber(node.source ?? '')) node.value = node.source;
    },
  });
  try {
    return {
      value: document.toJS(),
      lineOf: (path) => {
        const start = startOf(document.contents, path);
        return start === undefined ? undefined : lines.linePos(start).line;
      },
    };
  } catch {
    throw problem({
      path: file,
      message: 'has an alias without an anchor, or too many aliases',
      remedy: 'write the value out, or put it into quotes if it begins with `*`',
    });
  }
}

const OPEN_QUOTE = /Missing closing/;
const OPEN_BRACKET = /end with a [\]}]/;

/** Each pattern is matched with the code and the message of the error, because several mistakes have the same code. */
const REMEDIES: readonly (readonly [RegExp, string])[] = [
  [OPEN_QUOTE, 'write the quote that closes it, on the same line'],
  [OPEN_BRACKET, 'close the bracket that begins here, or indent all lines below it'],
  [/^DUPLICATE_KEY/, 'the setting is also in an earlier line: remove one of the two'],
  [/^BAD_INDENT/, 'indent the line as its neighbours'],
  [/^TAB_AS_INDENT/, 'indent the line with spaces'],
  [/^BLOCK_AS_IMPLICIT_KEY/, 'put a value with `: ` into quotes, or indent the next line as this one'],
];

const remedyOf = ({ code, message }: YAMLError): string =>
  REMEDIES.find(([pattern]) => pattern.test(`${code} ${message}`))?.[1] ??
  'correct that line; put a text with special characters into quotes';

/** Returns where an unclosed quote or bracket begins, because the parser reports only the end of the text. */
function beginningOf({ message, pos: [end] }: YAMLError, document: Document): number {
  const isQuote = OPEN_QUOTE.test(message);
  if (!isQuote && !OPEN_BRACKET.test(message)) return end;
  let start = end;
  visit(document, {
    Node(_, node) {
      const [from = end, to] = node.range ?? [];
      const isOpen = isQuote ? isScalar(node) && /^QUOTE/.test(node.type ?? '') : !isScalar(node) && to === end;
      if (from < end && isOpen) start = from;
    },
  });
  return start;
}

/** Returns the offset of the key of a setting, or of an entry of a list. */
function startOf(node: unknown, [key, ...below]: readonly string[]): number | undefined {
  if (isSeq(node)) {
    const entry = node.items[Number(key)];
    return below.length > 0 ? startOf(entry, below) : isNode(entry) ? entry.range?.[0] : undefined;
  }
  const pair = isMap(node) ? node.items.find((one) => String(one.key) === key) : undefined;
  if (pair === undefined) return undefined;
  return below.length > 0 ? startOf(pair.value, below) : isNode(pair.key) ? pair.key.range?.[0] : undefined;
}

const problem = (found: ConfigurationProblem) => new ConfigurationProblems([found]);
