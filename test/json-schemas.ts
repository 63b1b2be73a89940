/** The JSON Schemas of the settings file and of an import, for completion and checks in editors. */
import { z } from 'zod';
import { importLine } from '../src/changes/line.ts';
import { isHeading, type KnownSetting, knownSettings } from '../src/config/schema/known-settings.ts';
import { settingsFile } from '../src/config/schema/schema.ts';

/** Returns the schema in draft 7, which every YAML language server understands. */
export function settingsJsonSchema() {
  const { $schema, ...schema } = z.toJSONSchema(settingsFile, {
    io: 'input',
    target: 'draft-7',
    override({ jsonSchema, path }) {
      const names = path.filter((step) => step !== 'properties');
      const [heading] = names;
      const setting = knownSettings.get(names.join('.'));
      if (names.length === 1 && isHeading(String(heading))) {
        // A heading under which everything is commented out is null in YAML.
        Object.assign(jsonSchema, { type: ['object', 'null'] });
        delete jsonSchema.default;
      }
      if (setting) jsonSchema.description = `${setting.about} ${factsOf(setting)}`;
    },
  });
  return {
    $schema,
    title: 'Gatehouse settings',
    description: 'config/gatehouse.yaml, the settings file of a Gatehouse deployment.',
    ...schema,
  };
}

/** Accepted values, default and effect as text: JSON Schema has no ranges of durations. */
export const factsOf = ({ expectation, defaultValue, effect }: KnownSetting): string =>
  [
    ...(expectation ? [`Takes ${expectation.accepts}.`] : []),
    ...(defaultValue === undefined ? [] : [`Default: ${defaultValue}.`]),
    effect === 'reload' ? 'A reload applies it.' : 'Takes effect at the next start.',
  ].join(' ');

/** Returns the schema of a line of an import, also for developers of an export. */
export function importJsonSchema() {
  const { $schema, ...schema } = z.toJSONSchema(importLine, { io: 'input', target: 'draft-7' });
  return {
    $schema,
    title: 'Gatehouse import',
    description: 'One line of a file for `gatehouse import FILE` (JSON Lines, UTF-8).',
    ...schema,
  };
}
