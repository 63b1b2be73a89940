/** Old and new nodes run together: a migration removes nothing that an older node needs. */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';

const MIGRATIONS = path.join(import.meta.dirname, '../../src/storage/migrations');
/** Later migrations that an earlier node tolerates although the check below does not: clauses, with the reason. */
const TOLERATED: readonly string[] = [];
const [, ...later] = readdirSync(MIGRATIONS).sort();

describe('every migration after the first', () => {
  it('each later migration only adds to the schema, so that nodes of the previous version keep working', () => {
    for (const name of later) {
      expect(harmIn(readFileSync(path.join(MIGRATIONS, name), 'utf8')), name).to.deep.equal([]);
    }
  });

  it('the check of migrations detects a migration that would break a node of the previous version', () => {
    for (const harmful of [
      'alter table clients drop column name;',
      'drop index clients_owner;',
      'alter table clients rename to apps;',
      'alter table clients alter column name set not null;',
      'alter table clients alter column name type varchar(20);',
      'alter table clients add column colour text not null;',
      'alter table clients add constraint c unique (name);',
      'create unique index on clients (name);',
      'truncate activity;',
      'lock table clients;',
    ]) {
      expect(harmIn(`-- Up Migration\n${harmful}\n-- Down Migration\n`), harmful).to.have.length(1);
    }
    const harmless = `create table t (a text not null); create unique index on t (a);
      alter table clients alter column a set default 'x';
      alter table clients add column a text constraint k unique, add constraint c unique (a, name);`;
    expect(harmIn(`-- Up Migration\n${harmless}\n-- Down Migration\ndrop table t;`)).to.deep.equal([]);
  });
});

/** Returns the clauses that would break a node that does not know the migration. */
function harmIn(file: string): string[] {
  const up = (/-- Up Migration([\s\S]*?)(-- Down Migration|$)/.exec(file)?.[1] ?? '')
    .replace(/--.*$/gm, '')
    .toLowerCase();
  const added = [...up.matchAll(/add column (\w+)/g)].map(([, column = '']) => column);
  const created = [...up.matchAll(/create table (\w+)/g)].map(([, table = '']) => table);
  const namesAdded = (columns = ''): boolean => added.some((column) => new RegExp(`\\b${column}\\b`).test(columns));
  return up
    .split(';')
    .flatMap((statement) => statement.split(/,(?=\s*(?:add|drop|alter|rename)\b)/))
    .map((clause) => clause.replace(/\s+/g, ' ').trim())
    .filter((clause) => {
      if (TOLERATED.some((allowed) => clause.includes(allowed))) return false;
      if (/^create table\b/.test(clause)) return false;
      if (/\b(drop|rename|lock table)\b|^truncate\b|\balter column (?!\w+ set default\b)/.test(clause)) return true;
      if (/\badd column\b/.test(clause)) {
        return /\bnot null\b/.test(clause) && !/\bdefault\b/.test(clause);
      }
      const constraint = /\badd constraint \w+ (.*)/.exec(clause);
      if (constraint) return !namesAdded(constraint[1]);
      const index = /\bcreate unique index\b.*? on (\w+) ?(.*)/.exec(clause);
      return index !== null && !created.includes(index[1] ?? '') && !namesAdded(index[2]);
    });
}
