/** Old and new nodes run together: a migration removes nothing that an older node needs. */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';

const MIGRATIONS = path.join(import.meta.dirname, '../../src/storage/migrations');
/** The last migration of the first release: before it, no older version ran on the same database. */
const LAST_OF_THE_FIRST = '0016';

/** A migration that invalidates all tokens, as the CHANGELOG says: no service was deployed yet. */
const BEFORE_THE_FIRST_TAG = '0025_authorizations.sql';

/** Constraints and a column that now also accept what only new nodes write. */
const WIDENED = [
  'constraint activity_actor_check',
  'constraint password_links_purpose_check',
  'alter table browser_sessions alter column generation type bigint',
];

/**
 * What nodes of the previous version do not use: announcements of more than nodes need (each node
 * forgets what names the changed organization), and what a later migration had added.
 */
const NOT_NEEDED = [
  'drop trigger organizations_told_members on organizations',
  'drop function announce_organization_members()',
  'create unique index session_cutoff_one_row',
  'drop trigger accounts_end_client_offers on accounts',
  'drop trigger clients_end_offers on clients',
  'drop function end_client_offers()',
  'drop table client_offers',
  'drop column handed_over_by',
  'drop table settings_history',
  'drop table client_reports',
  'drop column message',
  'drop trigger account_identities_used on account_identities',
  'drop trigger passkeys_used on passkeys',
  'drop trigger accounts_recovered on accounts',
  'drop function forget_recovery_wait()',
  'drop table recovery_waits',
  'drop trigger node_keys_checksums on node_keys',
  'drop function refuse_nodes_without_checksums()',
  'drop table value_checksums',
  // Other indexes begin with the same column.
  'drop index organization_memberships_organization_id',
  'drop index api_keys_account_id',
];

const later = readdirSync(MIGRATIONS)
  .filter((name) => name.slice(0, 4) > LAST_OF_THE_FIRST && name !== BEFORE_THE_FIRST_TAG)
  .sort();

describe('every migration since the first release', () => {
  for (const name of later) {
    it(`the migration ${name} makes only additive changes`, () => {
      expect(harmIn(readFileSync(path.join(MIGRATIONS, name), 'utf8'))).to.deep.equal([]);
    });
  }

  it('the check of migrations detects one that would break a node of the previous version', () => {
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
      if ([...WIDENED, ...NOT_NEEDED].some((allowed) => clause.includes(allowed))) return false;
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
