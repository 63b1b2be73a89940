/** The pictures in docs/architecture.md: which part of src imports which, and who writes which tables. */
import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';

const ROOT = path.join(import.meta.dirname, '..');
const SCHEMA = path.join(ROOT, 'src/storage/migrations/0001_schema.sql');
/** Written in src/changes by statements whose table is a value, and by the demo. */
const GOVERNED = /^(?:accounts|account_identities|organizations|warehouses|organization_memberships|warehouse_rights)$/;

const files = globSync('src/**/*.ts', { cwd: ROOT }).sort();
const textOf = (file: string): string => readFileSync(path.join(ROOT, file), 'utf8');
/** Returns the folder in src, or the name of a file directly in src without its ending. */
const partOf = (file: string): string => (file.split('/')[1] ?? '').replace(/\.ts$/, '');

/** Draws an arrow from each part to those that it imports, without what other arrows already say. */
export function drawParts(): string {
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
export function drawTables(): string {
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
