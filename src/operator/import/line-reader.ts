/** Reads one line of an import file, or reports every problem with it. */
import type { z } from 'zod';
import { nearestWord } from '../../config/nearest-word.ts';
import {
  type BrokenLine,
  IMPORT_TYPES,
  type ImportType,
  importLine,
  importLineKey,
  keysOf,
  type Numbered,
} from '../../import/line.ts';

/** @param text one line, without its line break */
export function readImportLine(text: string, number: number): Numbered | BrokenLine {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return { number, problems: [notJson(error)] };
  }
  const { data, error } = importLine.safeParse(value);
  if (data) return { ...data, number };
  const key = importLineKey(value);
  const problems = error.issues.flatMap((issue) => problemsIn(issue, value));
  return { number, problems, ...(key && { key }) };
}

/** Reports where the parser stopped, without the text there, which may be anything. */
function notJson(error: unknown): string {
  const [, position] = /at position (\d+)/.exec(String(error)) ?? [];
  const where = position === undefined ? '' : ` from character ${Number(position) + 1} on`;
  return `is not JSON${where}; write one object, such as ${EXAMPLE}`;
}

const EXAMPLE = '{"type":"organization","external_id":"17","name":"Acme"}';

function problemsIn(issue: z.core.$ZodIssue, line: unknown): string[] {
  const [key, ...deeper] = issue.path.map(String);
  if (!isObject(line)) return [`is not an object; write one on each line, such as ${EXAMPLE}`];
  if (issue.code === 'unrecognized_keys') return issue.keys.map((one) => unknownKey(one, line));
  if (key === 'type') return [wrongType(line.type)];
  if (key === undefined) return [issue.message];
  const value = line[key];
  if (value === undefined) return [`${key}: is missing; every ${line.type} line needs it`];
  const shown = deeper.reduce(itemIn, value);
  return [`${key}: ${shortened(shown)} ${issue.message}`];
}

function unknownKey(key: string, line: Fields): string {
  const known = keysOf(line.type as ImportType);
  const meant = nearestWord(key, known);
  const remedy = meant
    ? `did you mean "${meant}"?`
    : `remove it; allowed here: ${known.join(', ')}`;
  return `${shortened(key)} is not a key of ${line.type} lines; ${remedy}`;
}

function wrongType(type: unknown): string {
  if (type === undefined) return `type: is missing; write one of ${IMPORT_TYPES.join(', ')}`;
  const meant = typeof type === 'string' ? nearestWord(type, IMPORT_TYPES) : undefined;
  const remedy = meant ? `did you mean "${meant}"?` : `write one of ${IMPORT_TYPES.join(', ')}`;
  return `type: ${shortened(type)} is not a type of line; ${remedy}`;
}

type Fields = Readonly<Record<string, unknown>>;

const isObject = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const itemIn = (value: unknown, step: string): unknown =>
  typeof value === 'object' && value !== null ? (value as Fields)[step] : value;

/** Formats as JSON, so that no character in the text moves the cursor of a terminal. */
function shortened(value: unknown): string {
  const text = JSON.stringify(value).replace(UNPRINTABLE, escaped);
  return text.length > 80 ? `${text.slice(0, 80)}…` : text;
}

const UNPRINTABLE = /[\p{C}\p{Zl}\p{Zp}]/gu;

const escaped = (character: string): string => `\\u{${character.codePointAt(0)?.toString(16)}}`;
