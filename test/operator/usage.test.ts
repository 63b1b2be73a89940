/** Rules for all commands: help, wrong usage, and the choice of the stores. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { createProgram, onlyReads, onlyStops } from '../../src/operator/program/program.ts';
import { describeDeployment } from '../../src/service/deployment.ts';
import { openDatabase } from '../../src/storage/database.ts';
import { hasSchema } from '../../src/storage/migrate.ts';
import { freshDatabaseUrl } from '../support/postgres-server.ts';
import { describeOn, postgresServer } from '../support/requirements.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { commandsOf, idle } from './commands.ts';
import { setUpOperator } from './operator-suite.ts';
import { expectWrongUsage, operatorWith, refusalFrom, valueFrom, variablesOf } from './run-operator.ts';

/** The meaning of each verb. A suffix names a part of the noun, as in `remove-secret`. */
const VERBS = {
  allow: 'allows more than a limit does, for an hour',
  add: 'creates a new one',
  show: 'shows one, with what is in it and who reaches it',
  list: 'lists all, or those that match the options',
  update: 'changes its name or other properties',
  delete: 'deletes it for good',
  remove: 'removes a part of something that remains',
  set: 'gives rights or a role, which `remove` takes back',
  suspend: 'refuses it until it is resumed',
  resume: 'ends a suspension',
  end: 'ends something active, such as sessions',
  revoke: 'revokes an API key: requests with it are refused',
  transfer: 'gives it to another owner',
  rotate: 'adds a second secret next to the current one',
  renew: 'ends all secrets and what was issued before, and makes one new secret',
  invite: 'creates a one-time link',
  policy: 'shows or changes what an organization decides about all clients and API keys',
  block: 'blocks a client in an organization, even if it is approved',
  unblock: 'ends the block of a client',
} as const;

describe('the operator command', () => {
  const program = createProgram(idle, { json: false });
  /** A command that must fail before it opens this directory, which does not exist. */
  const run = operatorWith({ GATEHOUSE_DATA_DIR: '/nowhere/at/all' });

  it('the operator command prints help on every level, with required options in the usage and examples that are valid', async () => {
    const commands = commandsOf(program);
    expect(commands.length).to.be.above(25);
    for (const [words, command] of [['', program] as const, ...commands]) {
      const { exitCode, output: help } = await run(`${words} --help`);
      expect(exitCode, words).to.equal(0);
      expect(help.startsWith(`Usage: gatehouse ${words}`), help).to.equal(true);
      expect(help, words).to.contain('--json');
      if (words === '') continue;
      const [, examples = ''] = help.split(/\nExamples?:\n/);
      const [usage = ''] = help.replace(/\n +/g, ' ').split('\n');
      for (const { flags } of command.options.filter(({ mandatory }) => mandatory)) expect(usage).to.contain(flags);
      if (command.commands.length > 0) continue;
      const known = ['--json', '--reason', ...command.options.map(({ long }) => long)];
      expect(known).to.include.members([...examples.matchAll(/--[a-z][a-z-]*/g)].map(String));
    }
  });

  it('without a command the operator program prints help and exits with 2 (wrong usage)', async () => {
    const answer = await run('');
    expect(answer).to.include({ exitCode: 2, output: '' });
    for (const [name] of commandsOf(program)) {
      if (!name.includes(' ')) expect(answer.errors).to.match(new RegExp(`^  ${name}\\b`, 'm'));
    }
    const { error } = await valueFrom(run, '', { exitCode: 2 });
    expect(error.message).to.equal('no command was given');
  });

  it('for wrong usage the operator command exits with 2 before it opens any store', async () => {
    await expectWrongUsage(run, [
      '',
      'accounts',
      'account list',
      'accounts suspend',
      'accounts add --email ada@example.test',
      'accounts add --email ada@example.test --name Ada',
      'clients add --kind spa --name App',
      'memberships set --account a@b.test --organization org_1',
      'memberships set --account a@b.test --warehouse wh_1 --rights fly',
      'memberships list --account a@b.test --client gate_ci_1',
      'audit --since yesterday',
      'audit --until 2026-13-01',
      'clients update gate_ci_1',
      'organizations update org_1',
      'connections list',
      'accounts list --limit 0',
      'accounts list --state odd',
      'memberships list --account a@b.test --role owner',
      ['accounts', 'list', '--reason', ''],
      'memberships list --organization org_1 --warehouse wh_1',
      'audit --limit 0',
      'audit --action flown',
      'audit --actor robot',
      'audit --before x',
      'revoke',
      'revoke --token x --account y',
      'revoke --account y --since 7d',
      'revoke --all --since 7d --yes',
      'memberships list --account a@b.test --match x',
      'import',
      'import /no/such/file',
      'import /tmp',
      'import x --prune-at-most 5%',
      'import x --prune-at-most 5%',
      'import x --prune --prune-at-most 101%',
    ]);
    for (const [line, meant] of [
      ['accounts ad', 'add'],
      ['revok', 'revoke'],
    ] as const) {
      const answer = await run(line);
      expect(answer).to.include({ exitCode: 2, output: '' });
      expect(answer.errors).to.contain(`Did you mean ${meant}?`);
    }
  });

  it('without a deployment the operator command exits with 2, and creates no data directory or database', async () => {
    const directory = path.join(temporaryDirectory('operator'), 'data');
    const alone = operatorWith({ GATEHOUSE_DATA_DIR: directory });
    for (const line of ['organizations add --name Acme', 'accounts list', 'revoke --all --yes', 'migrate']) {
      const { error } = await valueFrom(alone, line, { exitCode: 2 });
      expect(error, line).to.include({ code: 'no_deployment' });
      expect(error.message, line).to.contain(directory);
    }
    const { exitCode, output } = await alone('doctor');
    expect({ exitCode, output }).to.have.property('exitCode', 1);
    expect(output).to.contain(`There is no Gatehouse deployment in the data directory ${directory}`);
    expect(existsSync(directory)).to.equal(false);
  });

  it('commands use the same verb for the same action on all types of records', () => {
    const verbs = commandsOf(program)
      .filter(([words]) => words.includes(' '))
      .map(([words]) => words.split(' ')[1]?.split('-')[0] ?? '');
    const next = 'take one of VERBS, or add yours with what it means';
    expect([...new Set(verbs)], next).to.have.members(Object.keys(VERBS));
  });

  /** The names of all commands, without those that only group others. */
  const called = commandsOf(program).flatMap(([words, { commands }]) => (commands.length === 0 ? [words] : []));

  it('the commands that only read, and the commands that only end access, are exactly the listed commands', () => {
    const leaves = commandsOf(program).filter(([, { commands }]) => commands.length === 0);
    const namesOf = (is: typeof onlyReads) => leaves.flatMap(([words, command]) => (is(command) ? [words] : []));
    const listing = called.filter((words) => / (list|show)$/.test(words));
    const others = ['audit', 'check-config', 'doctor', 'nodes', 'show'];
    expect(namesOf(onlyReads)).to.have.members([...listing, ...others]);
    const ends = ['accounts suspend', 'api-keys revoke', 'clients suspend', 'connections end', 'organizations block'];
    expect(namesOf(onlyStops)).to.have.members([...ends, 'revoke', 'sessions end']);
  });

  it('every operator command is run by a test', () => {
    const folder = path.join(import.meta.dirname, '..');
    const tests = readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.test.ts') && name !== 'operator/usage.test.ts')
      .map((name) => readFileSync(path.join(folder, name), 'utf8'));
    const isRun = (words: string): boolean => {
      const typed = new RegExp(`[\`'"]${words}[ '"\`]|'${words.replaceAll(' ', "', '")}'`);
      return tests.some((text) => typed.test(text));
    };
    const missing = called.filter((words) => !isRun(words));
    expect(missing, 'add a test to test/operator/').to.deep.equal([]);
  });

  it('a command reports an unavailable database without needing secrets, and does not print the password', async () => {
    const DATABASE_URL = 'postgres://me:swordfish@127.0.0.1:1/gatehouse';
    const error = await refusalFrom(operatorWith({ DATABASE_URL }), 'accounts list');
    expect(error.code).to.equal('storage_unavailable');
    expect(JSON.stringify(error)).not.to.contain('swordfish');
  });
});

describe('the deployment that a command acts on', () => {
  describeOn([postgresServer], 'a database on which Gatehouse was never started', () => {
    it('a command on an empty database is refused with exit code 2, and the database stays empty', async () => {
      const DATABASE_URL = await freshDatabaseUrl();
      const run = operatorWith({ DATABASE_URL });
      const { error } = await valueFrom(run, 'revoke --all --yes', { exitCode: 2 });
      expect(error).to.include({ code: 'no_deployment' });
      const database = await openDatabase({ databaseUrl: DATABASE_URL, dataDirectory: '' });
      expect(await hasSchema(database)).to.equal(false);
      await database.close();
    });
  });

  const { parts } = setUpOperator();

  it('a command that changes something first prints its deployment, without the password', async () => {
    const run = operatorWith({ GATEHOUSE_ISSUER: 'http://localhost:4000', ...variablesOf(parts().database) });
    const { exitCode, errors } = await run(['organizations', 'add', '--name', 'Acme', '--json']);
    expect(exitCode).to.equal(0);
    expect(errors).to.match(/^Acting on http:\/\/\S+, .*PostgreSQL/);
    for (const line of ['organizations list', 'accounts list']) {
      expect(await run(line), line).to.have.property('errors', '');
    }
  });

  it('the description of a deployment contains issuer, host and database, but no password', () => {
    const storage = {
      dataDirectory: '/var/lib/gatehouse',
      databaseUrl: 'postgres://me:sword@fish@db.example.com:5433/gatehouse?sslmode=verify-full',
      redisUrl: 'rediss+sentinel://:swordfish@a.example.com,b.example.com/main',
    };
    expect(describeDeployment({ issuer: 'https://auth.example.com', storage })).to.equal(
      'https://auth.example.com, PostgreSQL db.example.com:5433/gatehouse, Redis a.example.com,b.example.com/main',
    );
  });
});
