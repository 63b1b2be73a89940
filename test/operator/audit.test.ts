import { Readable, Writable } from 'node:stream';
import { expect } from 'chai';
import { createActivity } from '../../src/accounts/activity/activity.ts';
import { runOperator } from '../../src/operator/program/run-operator.ts';
import { startTcpProxy } from '../storage/tcp-proxy.ts';
import { eventually } from '../support/eventually.ts';
import { freshDatabaseUrl } from '../support/postgres-server.ts';
import { freePort } from '../support/programs.ts';
import { describeOn, postgresServer } from '../support/requirements.ts';
import { setUpOperator } from './operator-suite.ts';
import { operatorWith, variablesOf } from './run-operator.ts';

describe('operator audit', () => {
  const { run, value, refusal, parts } = setUpOperator();
  let accountId: string;
  const audit = (options: string) => value(`audit ${options}`);

  before(async () => {
    ({ id: accountId } = await value('accounts add --email ada@example.test --name Ada --invite'));
    const activity = createActivity(parts());
    await activity.record({
      action: 'signed_in',
      actor: 'person',
      accountId,
      origin: { address: '192.0.2.7', browser: 'Firefox' },
    });
    await activity.record({
      action: 'tokens_revoked',
      actor: 'service',
      accountId,
      details: { client_id: 'gate_ci_a', client_name: 'Acme', cause: 'code_replayed' },
    });
  });

  it('`audit` prints time, actor, action, subject, account and address of each entry on separate lines', async () => {
    const { output } = await run('audit --limit 3');
    const [revoked = '', signedIn = '', , more = ''] = output.split('\n\n');
    expect(revoked).to.match(/^TIME {5}\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\n/);
    expect(revoked.split('\n').slice(1)).to.deep.equal([
      'WHO      (service)',
      'WHAT     Authorization ended',
      'ABOUT    Acme (an authorization code was presented a second time)',
      'OF       ada@example.test',
    ]);
    expect(signedIn.split('\n').slice(1)).to.deep.equal([
      'WHO      ada@example.test',
      'WHAT     Signed in',
      'ABOUT    (with a password)',
      'FROM     192.0.2.7',
    ]);
    expect(Math.max(...output.split('\n').map((line) => line.length))).to.be.at.most(80);
    const [record] = await audit('--limit 1 --action password_link_made');
    expect(more).to.equal(`There may be older entries: add --before ${record.id}\n`);
    expect((await run('audit --client nobody')).output).to.equal('No entry matches these options.\n');
  });

  it('`audit --json` prints one array with all fields but no secrets', async () => {
    const [record] = await audit('--client gate_ci_a');
    expect(record).to.deep.include({
      account_id: accountId,
      email: 'ada@example.test',
      address: null,
      browser: null,
      actor: 'service',
      action: 'tokens_revoked',
      what: 'Authorization ended',
      details: { client_id: 'gate_ci_a', client_name: 'Acme', cause: 'code_replayed' },
    });
    const recent = await audit('--account ada@example.test --since 1h');
    expect(recent.map(({ action }: { action: string }) => action)).to.deep.equal([
      'tokens_revoked',
      'signed_in',
      'password_link_made',
      'account_added',
    ]);
    expect(await audit('--until 2020-01-01')).to.deep.equal([]);
    expect(await audit(`--actor operator --before ${record.id}`)).to.have.length(2);
    const { code } = await refusal('audit --account nobody@example.test');
    expect(code).to.equal('account_unknown');
  });

  it('`audit` replaces control characters in the recorded values that it prints', async () => {
    const activity = createActivity(parts());
    await activity.record({
      action: 'signed_in',
      actor: 'person',
      accountId,
      origin: { address: '\u001b[2J\u202e::1\n', browser: 'x' },
    });
    const { output } = await run('audit --limit 1');
    expect(output).to.match(/\uFFFD\[2J\uFFFD::1\uFFFD\n/);
    expect(output.replaceAll('\n', '')).not.to.match(/\p{C}/u);
    const [record] = await audit('--limit 1');
    expect(record.address).to.equal('\u001b[2J\u202e::1\n');
  });
});

describe('operator audit by cursor', () => {
  const { run, value, refusal, parts } = setUpOperator();
  const record = (name: string) =>
    createActivity(parts()).record({ action: 'doctor_ran', actor: 'service', details: { name } });
  before(async () => {
    for (const name of ['a', 'b', 'c']) await record(name);
  });
  const namesOf = (entries: readonly { readonly details: { readonly name: string } }[]) =>
    entries.map(({ details }) => details.name).join('');

  it('`audit --after` prints the entries after a cursor, oldest first, and the next cursor', async () => {
    const first = await value('audit --after start --limit 2');
    expect(namesOf(first)).to.equal('ab');
    expect(namesOf(await value(`audit --after ${first[1].cursor}`))).to.equal('c');
    const { output } = await run('audit --after start --limit 2');
    expect(output).to.contain(`There are later entries: add --after ${first[1].cursor}`);
  });

  it('`audit --after` and `--follow` refuse filters and cursors of other deployments', async () => {
    expect((await refusal('audit --follow --action signed_in')).code).to.equal('options_conflict');
    const { code, remedy } = await refusal('audit --after 000000000000-1-1');
    expect(code).to.equal('cursor_of_another_log');
    expect(remedy).to.contain('without a cursor');
    expect((await refusal('audit --after x --follow')).code).to.equal('cursor_invalid');
  });

  it('`audit --follow --json` prints one line of JSON for each entry until it is interrupted', async () => {
    const lines: string[] = [];
    let interrupt = () => {};
    const stdout = new Writable({
      write(chunk, _encoding, done) {
        lines.push(...String(chunk).split('\n').filter(Boolean));
        done();
      },
    });
    const running = runOperator(['audit', '--follow', '--after', 'start', '--json'], {
      environment: variablesOf(parts().database),
      stdin: Readable.from([]),
      stdout,
      stderr: new Writable({ write: (_chunk, _encoding, done) => done() }),
      onInterrupt: (end) => {
        interrupt = end;
      },
    });
    await eventually(() => expect(lines).to.have.length(3));
    await record('d');
    await eventually(() => expect(lines).to.have.length(4));
    interrupt();
    expect(await running).to.equal(0);
    expect(namesOf(lines.map((line) => JSON.parse(line)))).to.equal('abcd');
    expect(JSON.parse(lines[3] ?? '')).to.include({ type: 'audit', action: 'doctor_ran' });
  });

  it('`audit --follow` waits for a slow reader and keeps no more than one entry in memory', async () => {
    let written = 0;
    // This reader never takes the first line.
    const stdout = new Writable({
      highWaterMark: 1,
      write() {
        written += 1;
      },
    });
    let interrupt = () => {};
    const running = runOperator(['audit', '--follow', '--after', 'start', '--json'], {
      environment: variablesOf(parts().database),
      stdin: Readable.from([]),
      stdout,
      stderr: new Writable({ write: (_chunk, _encoding, done) => done() }),
      onInterrupt: (end) => {
        interrupt = end;
      },
    });
    await eventually(() => expect(written).to.equal(1));
    const [first] = await value('audit --after start --limit 1');
    interrupt();
    expect(await running).to.equal(0);
    expect(stdout.writableLength).to.equal(Buffer.byteLength(`${JSON.stringify(first)}\n`));
  });
});

describeOn([postgresServer], 'audit --follow while the database is away', () => {
  it('the command waits until the database answers, and then prints each later entry once', async () => {
    const url = new URL(await freshDatabaseUrl());
    const target = Number(url.port);
    const proxy = await startTcpProxy(target);
    url.port = String(proxy.port);
    const environment = { DATABASE_URL: url.href };
    const operator = operatorWith(environment);
    await operator('migrate');
    const lines: string[] = [];
    const errors: string[] = [];
    const into = (list: string[]) =>
      new Writable({
        write(chunk, _encoding, done) {
          list.push(...String(chunk).split('\n').filter(Boolean));
          done();
        },
      });
    let interrupt = () => {};
    const running = runOperator(['audit', '--follow', '--after', 'start', '--json'], {
      environment,
      stdin: Readable.from([]),
      stdout: into(lines),
      stderr: into(errors),
      onInterrupt: (end) => {
        interrupt = end;
      },
    });
    const add = (name: string) => operator(`accounts add --email ${name}@example.test --name ${name} --invite`);
    await add('ada');
    const perAccount = 2;
    await eventually(() => expect(lines).to.have.length(perAccount));
    proxy.leadTo(await freePort());
    proxy.breakAll();
    await eventually(() => expect(errors.join()).to.contain('until the database answers'));
    proxy.leadTo(target);
    await add('bob');
    await eventually(() => expect(lines).to.have.length(2 * perAccount));
    interrupt();
    expect(await running).to.equal(0);
    expect(new Set(lines).size).to.equal(lines.length);
    await proxy.close();
  });
});
