/** `npm run docs`: writes the settings into the docs, the schema and the settings file, and the pictures of the code. */
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { parse, stringify } from 'yaml';
import { z } from 'zod';
import { importLine } from '../src/changes/line.ts';
import { isHeading, type KnownSetting, knownSettings } from '../src/config/schema/known-settings.ts';
import { settingsFile } from '../src/config/schema/schema.ts';

const ROOT = path.join(import.meta.dirname, '..');
const WRITTEN_BELOW = '<!-- settings: written by `npm run docs` -->\n';

interface Described {
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Described>>;
}

/** Returns each file that `npm run docs` writes, with its complete text. */
export function writtenDocs(): ReadonlyMap<string, string> {
  const guide = path.join(ROOT, 'docs/configuration.md');
  const [byHand = ''] = readFileSync(guide, 'utf8').split(WRITTEN_BELOW);
  const file = path.join(ROOT, 'config/gatehouse.yaml');
  // Keep the first paragraph of the page: it is written by hand, the rest is generated.
  const [introduction = ''] = readFileSync(file, 'utf8').split('\n\n');
  const { properties = {} } = settingsJsonSchema() as Described;
  const parts = Object.keys(properties).map(partOfFile);
  const map = path.join(ROOT, 'docs/architecture.md');
  return new Map([
    [map, withPictures(readFileSync(map, 'utf8'))],
    [file, `${[introduction, ...parts].join('\n\n')}\n`],
    [guide, `${byHand}${WRITTEN_BELOW}\n${tables(properties)}`],
    [path.join(ROOT, 'config/gatehouse.schema.json'), `${JSON.stringify(settingsJsonSchema(), null, 2)}\n`],
    [path.join(ROOT, 'config/import.schema.json'), `${JSON.stringify(importJsonSchema(), null, 2)}\n`],
  ]);
}

/** Replaces each picture of the page, below its mark. */
const withPictures = (page: string): string =>
  page
    .replace(/(?<=<!-- parts: .*-->\n)```.*?```\n/s, drawParts)
    .replace(/(?<=<!-- tables: .*-->\n)```.*?```\n/s, drawTables);

/** Formats a heading with its settings, or a setting without a heading. */
function partOfFile(name: string): string {
  const alone = knownSettings.get(name);
  if (alone) return settingInFile(alone);
  return [`${name}:`, ...settingsUnder(name).map(settingInFile)].join('\n');
}

/** Formats a setting with its description as a comment. Without a default it is commented out. */
function settingInFile(setting: KnownSetting): string {
  const { path: steps, about, note, defaultValue, example, expectation } = setting;
  const indent = '  '.repeat(steps.length - 1);
  const sentences = [[about, note].filter(Boolean).join(' '), factsOf(setting)];
  const [, sample = ''] = /`([^`]+)`/.exec(expectation?.example ?? '') ?? [];
  const value = defaultValue ?? example ?? parse(sample);
  const mark = defaultValue === undefined ? '# ' : '';
  const comment = sentences
    .flatMap((text) => wrapped(text, WIDTH - indent.length - 2))
    .map((line) => `${indent}# ${line}\n`);
  return `${comment.join('')}${indent}${mark}${steps.at(-1)}: ${stringify(value, FLOW).trim()}`;
}

const WIDTH = 100;
/** Writes lists in one line, so that the line can be a comment. */
const FLOW = { collectionStyle: 'flow', flowCollectionPadding: false } as const;

function wrapped(text: string, width: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const line = `${lines.at(-1) ?? ''} ${word}`;
    if (lines.length > 0 && line.length <= width) lines[lines.length - 1] = line;
    else lines.push(word);
  }
  return lines;
}

/** Returns a table of the settings without a heading, then one for each heading. */
function tables(sections: Readonly<Record<string, Described>>): string {
  const headings = ['', ...Object.keys(sections).filter(isHeading)];
  return headings.map((heading) => tableOf(heading, sections[heading])).join('\n');
}

function tableOf(heading: string, section: Described = {}): string {
  const title = heading === '' ? '' : `### ${heading}\n\n${section.description ?? ''}\n\n`;
  const rows = settingsUnder(heading).map((setting) => `| ${cellsOf(setting).map(cell).join(' | ')} |\n`);
  return `${title}| setting | what | takes | default | in force after |\n|---|---|---|---|---|\n${rows.join('')}`;
}

/** @param heading empty for settings without a heading */
const settingsUnder = (heading: string): KnownSetting[] =>
  [...knownSettings.values()].filter(({ path: steps }) => steps.slice(0, -1).join('.') === heading);

const cellsOf = ({ name, about, expectation, defaultValue, effect, reach }: KnownSetting) => [
  `\`${name}\``,
  about,
  expectation?.accepts ?? '',
  String(defaultValue ?? ''),
  [`a ${effect}`, reach].filter(Boolean).join(', '),
];

const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('<', '&lt;');

/** Returns the schema in draft 7, which every YAML language server understands. */
function settingsJsonSchema() {
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
const factsOf = ({ expectation, defaultValue, effect }: KnownSetting): string =>
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

const SCHEMA = path.join(ROOT, 'src/storage/migrations/0001_schema.sql');
/** Written in src/changes by statements whose table is a value, and by the demo. */
const GOVERNED = /^(?:accounts|account_identities|organizations|warehouses|organization_memberships|warehouse_rights)$/;

const files = globSync('src/**/*.ts', { cwd: ROOT }).sort();
const textOf = (file: string): string => readFileSync(path.join(ROOT, file), 'utf8');
/** Returns the folder in src, or the name of a file directly in src without its ending. */
const partOf = (file: string): string => (file.split('/')[1] ?? '').replace(/\.ts$/, '');

/** Draws an arrow from each part to those that it imports, without what other arrows already say. */
function drawParts(): string {
  const imports = new Map<string, Set<string>>();
  for (const file of files) {
    const found = imports.get(partOf(file)) ?? new Set();
    imports.set(partOf(file), found);
    for (const [, specifier = ''] of textOf(file).matchAll(/from '(\.[^']+)'/g)) {
      const part = partOf(path.join(path.dirname(file), specifier));
      if (part !== '' && part !== partOf(file) && part !== 'base') found.add(part);
    }
  }
  imports.delete('base');
  const reach = (part: string): string[] => [...(imports.get(part) ?? [])].flatMap((next) => [next, ...reach(next)]);
  const arrows = [...imports].map(([part, direct]) => {
    const drawn = [...direct].filter(
      (one) => ![...direct].some((other) => other !== one && reach(other).includes(one)),
    );
    return drawn.length === 0 ? '' : `  ${part} --> ${drawn.sort().join(' & ')}\n`;
  });
  return `\`\`\`mermaid\nflowchart TD\n${arrows.join('')}\`\`\`\n`;
}

/** Draws each table in the part that writes it, with lines to the tables whose rows its rows belong to. */
function drawTables(): string {
  const schema = readFileSync(SCHEMA, 'utf8');
  const tables = schema.matchAll(/^create (?:unlogged )?table (\w+) \((.*?)\);/gms);
  const owned = new Map<string, string[]>();
  const belonging = new Map<string, Set<string>>();
  for (const [, table = '', columns = ''] of tables) {
    const owner = ownerOf(table);
    owned.set(owner, [...(owned.get(owner) ?? []), table]);
    for (const [, whole = ''] of columns.matchAll(/\breferences (\w+)/g)) {
      if (whole !== table) belonging.set(whole, (belonging.get(whole) ?? new Set()).add(table));
    }
  }
  const boxes = [...owned].map(
    ([owner, names]) => `  subgraph in_${owner} [${owner}]\n    ${names.join('; ')}\n  end\n`,
  );
  const lines = [...belonging].map(([whole, names]) => `  ${whole} --- ${[...names].join(' & ')}\n`);
  return `\`\`\`mermaid\nflowchart LR\n${boxes.join('')}${lines.join('')}\`\`\`\n`;
}

function ownerOf(table: string): string {
  if (GOVERNED.test(table)) return 'changes';
  const writes = new RegExp(`(?:INSERT INTO|UPDATE|DELETE FROM)\\s+${table}\\b`, 'g');
  const counts = new Map<string, number>();
  for (const file of files) {
    const count = textOf(file).match(writes)?.length ?? 0;
    if (count > 0) counts.set(partOf(file), (counts.get(partOf(file)) ?? 0) + count);
  }
  // The rows of member_connections are written by triggers, those of rate_limits by a function of the schema.
  return [...counts].sort(([, one], [, other]) => other - one)[0]?.[0] ?? 'storage';
}

if (import.meta.main) {
  for (const [file, text] of writtenDocs()) writeFileSync(file, text);
}
