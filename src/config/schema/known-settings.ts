/** Every setting of the schema as a list, for all that speaks about settings by their names. */
import { z } from 'zod';
import { type Expectation, expectations } from './kinds.ts';
import { type Effect, effects, sections, settingsFile } from './schema.ts';

export interface KnownSetting {
  /** As it is named everywhere: `tokens.retry_window`. */
  readonly name: string;
  /** Where it stands in the file: `['tokens', 'retry_window']`. */
  readonly path: readonly string[];
  /** What it is for, in sentences. */
  readonly description: string;
  /** In the words of the file; undefined where none is fixed. */
  readonly defaultValue: unknown;
  readonly isNumber: boolean;
  readonly expectation: Expectation | undefined;
  /** Where a change of it is seen. */
  readonly effect: Effect;
}

/** In the order of the schema, by name. */
export const knownSettings: ReadonlyMap<string, KnownSetting> = new Map(
  Object.entries<z.ZodType>(settingsFile.shape)
    .flatMap(([name, schema]) =>
      Object.hasOwn(sections, name)
        ? Object.entries(settingsUnder(name)).map(([key, inner]) => known([name, key], inner))
        : [known([name], schema)],
    )
    .map((setting) => [setting.name, setting]),
);

/** The settings under a heading; none for any other word. */
export function settingsUnder(heading: string): Readonly<Record<string, z.ZodType>> {
  if (!Object.hasOwn(sections, heading)) return {};
  return sections[heading as keyof typeof sections];
}

/** What is expected at a path, which may lead into a list: `['sign_in', 'providers', '0', 'id']`. */
export function expectationAt(path: readonly string[]): Expectation | undefined {
  let schema: unknown = settingsFile;
  for (const step of path) {
    const { kind } = unwrapped(schema as z.ZodType);
    if (kind instanceof z.ZodObject) schema = kind.shape[step];
    else if (kind instanceof z.ZodArray) schema = kind.element;
    else return undefined;
    if (schema === undefined) return undefined;
  }
  return expectations.get(unwrapped(schema as z.ZodType).kind);
}

/** The settings of each entry where a list of them stands; none for any other path. */
export function settingsInList(path: readonly string[]): readonly string[] {
  const { kind } = unwrapped(settingsUnder(path[0] ?? '')[path[1] ?? ''] ?? z.unknown());
  const entry = kind instanceof z.ZodArray ? kind.element : undefined;
  return entry instanceof z.ZodObject ? Object.keys(entry.shape) : [];
}

function known(path: readonly string[], schema: z.ZodType): KnownSetting {
  const { kind, defaultValue } = unwrapped(schema);
  return {
    name: path.join('.'),
    path,
    description: schema.description ?? '',
    defaultValue,
    isNumber: kind instanceof z.ZodNumber,
    expectation: expectations.get(kind),
    effect: effectOf(path),
  };
}

function effectOf([section = '', key = '']: readonly string[]): Effect {
  const table: Readonly<Record<string, Effect | Readonly<Record<string, Effect>>>> = effects;
  const effect = table[section];
  // A setting that the table does not know is not said to be in force.
  return (typeof effect === 'object' ? effect[key] : effect) ?? 'restart';
}

/** The kind of value beneath what makes it optional, and the default that was put around it. */
function unwrapped(schema: z.ZodType): { kind: z.ZodType; defaultValue: unknown } {
  let kind: unknown = schema;
  let defaultValue: unknown;
  while (
    kind instanceof z.ZodDefault ||
    kind instanceof z.ZodPrefault ||
    kind instanceof z.ZodOptional
  ) {
    if (!(kind instanceof z.ZodOptional)) ({ defaultValue } = kind.def);
    kind = kind.unwrap();
  }
  return { kind: kind as z.ZodType, defaultValue };
}
