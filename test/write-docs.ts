/** `npm run docs`: writes what the docs and the editors are told of the settings. */
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { settingsJsonSchema } from '../src/config/schema/json-schema.ts';
import { type KnownSetting, knownSettings } from '../src/config/schema/known-settings.ts';

const ROOT = path.join(import.meta.dirname, '..');
const WRITTEN_BELOW = '<!-- settings: written by `npm run docs` -->\n';

interface Described {
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Described>>;
}

/** Each file that `npm run docs` writes, with the whole text that belongs into it. */
export function writtenDocs(): ReadonlyMap<string, string> {
  const guide = path.join(ROOT, 'docs/configuration.md');
  const [byHand = ''] = readFileSync(guide, 'utf8').split(WRITTEN_BELOW);
  return new Map([
    [guide, `${byHand}${WRITTEN_BELOW}\n${tables()}`],
    [
      path.join(ROOT, 'config/gatehouse.schema.json'),
      `${JSON.stringify(settingsJsonSchema(), null, 2)}\n`,
    ],
  ]);
}

/** A table of what stands alone in the file, then one for each heading. */
function tables(): string {
  const { properties = {} } = settingsJsonSchema() as Described;
  const headings = ['', ...Object.keys(properties).filter((name) => !knownSettings.has(name))];
  return headings.map((heading) => tableOf(heading, properties[heading])).join('\n');
}

function tableOf(heading: string, section: Described = {}): string {
  const settings = [...knownSettings.values()].filter(({ path: steps }) =>
    heading === '' ? steps.length === 1 : steps.length === 2 && steps[0] === heading,
  );
  const title = heading === '' ? '' : `### ${heading}\n\n${section.description ?? ''}\n\n`;
  const rows = settings.map((setting) => `| ${cellsOf(setting).map(cell).join(' | ')} |\n`);
  return `${title}| setting | what | takes | default | in force after |\n|---|---|---|---|---|\n${rows.join('')}`;
}

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
