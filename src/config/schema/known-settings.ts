/** Every setting of the schema as a list, for all that speaks about settings by their names. */
import { z } from 'zod';
import { type Expectation, expectations } from './kinds.ts';
import { settingsFile } from './schema.ts';
import { type SettingFacts, settingFacts } from './setting.ts';

export interface KnownSetting extends SettingFacts {
  /** As it is named everywhere: `tokens.retry_window`. */
  readonly name: string;
  /** Where it stands in the file: `['tokens', 'retry_window']`. */
  readonly path: readonly string[];
  /** Where the code reads it: `['tokens', 'retryWindowSeconds']`. */
  readonly codePath: readonly string[];
  /** In the words of the file; undefined where none is fixed. */
  readonly defaultValue: unknown;
  readonly isNumber: boolean;
  readonly isPerNode: boolean;
  readonly expectation: Expectation | undefined;
}

/** In the order of the schema, by name. */
export const knownSettings: ReadonlyMap<string, KnownSetting> = new Map(
  Object.entries<z.ZodType>(settingsFile.shape)
    .flatMap(([name, schema]) =>
      isHeading(name)
        ? Object.entries(settingsUnder(name)).map(([key, inner]) => known([name, key], inner))
        : [known([name], schema)],
    )
    .map((setting) => [setting.name, setting]),
);

/** True for a name below which settings stand. */
export function isHeading(name: string): boolean {
  return Object.keys(settingsUnder(name)).length > 0;
}

/** The settings under a heading; none for any other word. */
export function settingsUnder(heading: string): Readonly<Record<string, z.ZodType>> {
  const shape: Readonly<Record<string, z.ZodType>> = settingsFile.shape;
  const schema = Object.hasOwn(shape, heading) ? shape[heading] : undefined;
  const kind = schema && unwrapped(schema).kind;
  return kind instanceof z.ZodObject ? kind.shape : {};
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
  const name = path.join('.');
  const facts = settingFacts.get(schema);
  if (facts === undefined)
    throw new Error(`${name} is declared neither by reloadable() nor by fixed()`);
  const { kind, defaultValue } = unwrapped(schema);
  const expectation = expectations.get(kind);
  const codePath = path.map(camelCase).join('.') + (expectation?.unit ?? '');
  return {
    isPerNode: facts.effect === 'restart',
    ...facts,
    name,
    path,
    codePath: codePath.split('.'),
    defaultValue,
    isNumber: kind instanceof z.ZodNumber,
    expectation,
  };
}

/** `retry_window` becomes `retryWindow`. */
export function camelCase(name: string): string {
  return name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/** The kind of value beneath what makes it optional, and the default that was put around it. */
function unwrapped(schema: z.ZodType): { kind: z.ZodType; defaultValue: unknown } {
  let kind: unknown = schema;
  let defaultValue: unknown;
  while (
    kind instanceof z.ZodDefault ||
    kind instanceof z.ZodPrefault ||
    kind instanceof z.ZodExactOptional
  ) {
    if (!(kind instanceof z.ZodExactOptional)) ({ defaultValue } = kind.def);
    kind = kind.unwrap();
  }
  return { kind: kind as z.ZodType, defaultValue };
}
