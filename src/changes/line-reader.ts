/** Reads one line of an import file or of pushed changes, or reports every problem with it. */
import { isUtf8 } from 'node:buffer';
import type { z } from 'zod';
import {
  type BrokenLine,
  IMPORT_TYPES,
  type ImportLine,
  type ImportType,
  importLine,
  importLineKey,
  keysOf,
  type Numbered,
} from './line.ts';

/** This is far more than the longest valid line, which has about 3,000 bytes. */
export const MAX_LINE_BYTES = 65_536;
const BYTE_ORDER_MARK = '\uFEFF';

/** The schema of a line, which may depend on its content, and the keys that each type allows. */
export interface LineRules<Line> {
  schemaOf(value: unknown): z.ZodType<Line>;
  keysOf(type: ImportType): readonly string[];
}

const IMPORT_RULES: LineRules<ImportLine> = { schemaOf: () => importLine, keysOf };

/** @param bytes one line, without its line break @returns undefined for a blank line */
export function readLineBytes<Line>(
  bytes: Buffer,
  number: number,
  rules: LineRules<Line>,
): (Line & { readonly number: number }) | BrokenLine | undefined {
  const broken = (problem: string): BrokenLine => ({ number, problems: [problem] });
  if (bytes.length > MAX_LINE_BYTES) return broken(TOO_LONG);
  if (!isUtf8(bytes)) return broken('is not UTF-8; write the file in UTF-8');
  if (bytes.includes(0)) return broken('contains a NUL byte; remove it');
  const text = bytes.toString().replace(BYTE_ORDER_MARK, '').trim();
  return text === '' ? undefined : readLine(text, number, rules);
}

export const TOO_LONG = `is longer than ${MAX_LINE_BYTES} bytes; write each object on a separate line`;

/** @param bytes one line of an import file, without its line break */
export const readImportLine = (bytes: Buffer, number: number): Numbered | BrokenLine | undefined =>
  readLineBytes(bytes, number, IMPORT_RULES);

function readLine<Line>(
  text: string,
  number: number,
  { schemaOf, keysOf: allowed }: LineRules<Line>,
): (Line & { readonly number: number }) | BrokenLine {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return { number, problems: [notJson(error)] };
  }
  const { data, error } = schemaOf(value).safeParse(value);
  if (error === undefined) return { ...data, number };
  const key = importLineKey(value);
  const problems = error.issues.flatMap((issue) => problemsIn(issue, value, allowed));
  return { number, problems, ...(key && { key }) };
}

/** Says where the parser stopped, without quoting the text, which may be anything. */
function notJson(error: unknown): string {
  const [, position] = /at position (\d+)/.exec(String(error)) ?? [];
  const where = position === undefined ? '' : ` from character ${Number(position) + 1} on`;
  return `is not JSON${where}; write one object, such as ${EXAMPLE}`;
}

const EXAMPLE = '{"type":"organization","external_id":"17","name":"Acme"}';

function problemsIn(issue: z.core.$ZodIssue, line: unknown, allowed: LineRules<unknown>['keysOf']): string[] {
  const path = issue.path.map(String);
  const [key] = path;
  if (!isObject(line)) return [`is not an object; write one on each line, such as ${EXAMPLE}`];
  if (issue.code === 'unrecognized_keys') {
    const known = allowed(line.type as ImportType);
    return issue.keys.map((one) => unknownKey(one, line, known));
  }
  if (key === 'type') return [wrongType(line.type)];
  const value = path.reduce(itemIn, line as unknown);
  if (value === undefined) return [`${path.join('.')}: is missing; this ${line.type} line needs it`];
  return [`${key}: ${shortened(value)} ${issue.message}`];
}

function unknownKey(key: string, line: Fields, known: readonly string[]): string {
  return `${shortened(key)} is not a key of ${line.type} lines; remove it; allowed here: ${known.join(', ')}`;
}

function wrongType(type: unknown): string {
  if (type === undefined) return `type: is missing; write one of ${IMPORT_TYPES.join(', ')}`;
  return `type: ${shortened(type)} is not a type of line; write one of ${IMPORT_TYPES.join(', ')}`;
}

type Fields = Readonly<Record<string, unknown>>;

const isObject = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const itemIn = (value: unknown, step: string): unknown => (value as Fields)[step];

/** JSON escapes the characters that would move the cursor of a terminal. */
function shortened(value: unknown): string {
  const text = jsonOf(value).replace(UNPRINTABLE, escaped);
  return text.length > 80 ? `${text.slice(0, 80)}…` : text;
}

function jsonOf(value: unknown): string {
  try {
    return JSON.stringify(value);
  } catch {
    // JSON.stringify exceeds the stack at thousands of nested arrays.
    return '[…]';
  }
}

const UNPRINTABLE = /[\p{C}\p{Zl}\p{Zp}]/gu;

const escaped = (character: string): string => `\\u{${character.codePointAt(0)?.toString(16)}}`;
