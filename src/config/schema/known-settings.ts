/** A list of all settings of the schema, for code that handles settings by their names. */
import { z } from 'zod';
import { type Expectation, expectations } from './kinds.ts';
import { settingsFile } from './schema.ts';
import { type SettingFacts, settingFacts } from './setting.ts';

export interface KnownSetting extends SettingFacts {
  /** The name of the setting in messages and docs, such as `tokens.retry_window`. */
  readonly name: string;
  /** The keys that lead to the setting in the settings file: `['tokens', 'retry_window']`. */
  readonly path: readonly string[];
  /** The keys that lead to the setting in a `Settings` object: `['tokens', 'retryWindowSeconds']`. */
  readonly codePath: readonly string[];
  /** The default as written in the file; undefined if there is no fixed default. */
  readonly defaultValue: unknown;
  readonly isNumber: boolean;
  readonly isPerNode: boolean;
  readonly expectation: Expectation | undefined;
}

/** All settings by name, in the order of the schema. */
export const knownSettings: ReadonlyMap<string, KnownSetting> = new Map(
  Object.entries<z.ZodType>(settingsFile.shape)
    .flatMap(([name, schema]) =>
      isHeading(name)
        ? Object.entries(settingsUnder(name)).map(([key, inner]) => known([name, key], inner))
        : [known([name], schema)],
    )
    .map((setting) => [setting.name, setting]),
);

/** True for the name of a heading with settings below it. */
export function isHeading(name: string): boolean {
  return Object.keys(settingsUnder(name)).length > 0;
}

/** Returns the settings under a heading; none if no heading has this name. */
export function settingsUnder(heading: string): Readonly<Record<string, z.ZodType>> {
  const shape: Readonly<Record<string, z.ZodType>> = settingsFile.shape;
  const schema = Object.hasOwn(shape, heading) ? shape[heading] : undefined;
  const kind = schema && unwrapped(schema).kind;
  return kind instanceof z.ZodObject ? kind.shape : {};
}

/** Returns which values a setting accepts. Its path may lead into a list: `['sign_in', 'providers', '0', 'id']`. */
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

/** If the setting at this path is a list, returns the names of the settings of its entries; otherwise none. */
export function settingsInList(path: readonly string[]): readonly string[] {
  const { kind } = unwrapped(settingsUnder(path[0] ?? '')[path[1] ?? ''] ?? z.unknown());
  const entry = kind instanceof z.ZodArray ? kind.element : undefined;
  return entry instanceof z.ZodObject ? Object.keys(entry.shape) : [];
}

function known(path: readonly string[], schema: z.ZodType): KnownSetting {
  const name = path.join('.');
  const facts = settingFacts.get(schema);
  if (facts === undefined) throw new Error(`${name} is declared neither by reloadable() nor by fixed()`);
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

/** Converts a name: `retry_window` becomes `retryWindow`. */
export function camelCase(name: string): string {
  return name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/** Returns the default of a schema, and the schema without its wrappers for optional values and defaults. */
function unwrapped(schema: z.ZodType): { kind: z.ZodType; defaultValue: unknown } {
  let kind: unknown = schema;
  let defaultValue: unknown;
  while (kind instanceof z.ZodDefault || kind instanceof z.ZodPrefault || kind instanceof z.ZodExactOptional) {
    if (!(kind instanceof z.ZodExactOptional)) ({ defaultValue } = kind.def);
    kind = kind.unwrap();
  }
  return { kind: kind as z.ZodType, defaultValue };
}
