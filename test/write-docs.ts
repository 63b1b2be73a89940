/** `npm run docs`: writes the settings into the docs, the schema and the settings file, and the pictures of the code. */
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { parse, stringify } from 'yaml';
import { isHeading, type KnownSetting, knownSettings } from '../src/config/schema/known-settings.ts';
import { factsOf, importJsonSchema, settingsJsonSchema } from './json-schemas.ts';
import { drawParts, drawTables } from './pictures-of-code.ts';

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

if (import.meta.main) {
  for (const [file, text] of writtenDocs()) writeFileSync(file, text);
}
