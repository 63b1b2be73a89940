/** The doctor removes everything that it created, however it ends. */
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import { createDoctorAccounts } from '../../src/accounts/doctor-accounts.ts';
import { createVisitors } from '../../src/doctor/visitor.ts';
import { fileWith } from '../config/configuration.ts';
import { OPERATOR_PROGRAM, storesOf } from '../operator/run-operator.ts';
import { createOpened } from '../support/opened.ts';
import { freePort } from '../support/programs.ts';
import { seed } from '../support/seed.ts';
import { onPostgresAndRedis, startTestService, type TestService } from '../support/service.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { startUpstream } from '../support/upstream.ts';
import { examine } from './doctor-findings.ts';
import { startReverseProxy } from './reverse-proxy.ts';

const environmentOf = (service: TestService) => ({
  GATEHOUSE_ISSUER: service.issuer,
  PORT: String(service.settings.server.port),
  ...storesOf(service),
});

/** Counts the rows of each table in which the doctor could leave some. */
async function tracesIn({ database }: TestService): Promise<Record<string, number>> {
  const traces: Record<string, number> = {};
  for (const table of [
    'accounts',
    'clients',
    'client_secrets',
    'connections',
    'authorizations',
    'activity',
    'client_requests',
    'ended_authorizations',
  ]) {
    traces[table] = (await database.query(`SELECT 1 FROM ${table}`)).length;
  }
  return traces;
}

onPostgresAndRedis('operator doctor, on a running service', (start) => {
  let service: TestService;
  let present: Record<string, number>;

  beforeEach(async () => {
    // Owners of clients need more than a password here, but the doctor's temporary account does not.
    service = await start({
      settings: { signIn: { require: 'passkey-or-upstream', requireGraceSeconds: 0 } },
    });
    await seed(service);
    present = await tracesIn(service);
  });

  it('the doctor tries all steps of the service and leaves one log entry, with the outcome', async () => {
    const { healthy, output, of } = await examine(environmentOf(service));
    expect(healthy, output).to.equal(true);
    expect(of('refresh_revoked').status).to.equal('ok');
    expect(await tracesIn(service)).to.deep.equal({
      ...present,
      activity: (present.activity ?? 0) + 1,
    });
    const [record] = await service.database.query(
      'SELECT action, actor, account_id, details FROM activity ORDER BY id DESC LIMIT 1',
    );
    expect(record).to.deep.equal({
      action: 'doctor_ran',
      actor: 'operator',
      account_id: null,
      details: { outcome: '0 problem(s)' },
    });
    expect(output).not.to.match(/gate_(at|rt|ac|cs)_/);
  });

  it('without passwords the doctor tries all steps with a one-time link, and it reports unknown test organizations', async () => {
    const port = await freePort();
    const issuer = `http://localhost:${port}`;
    const upstream = await startUpstream(issuer);
    const signIn = { passwords: false, providers: [upstream.settings()] };
    service = await start({ settings: { issuer, server: { port }, signIn } });
    await seed(service);
    await service.accounts.add({ email: 'anna@corp.test', name: 'Anna' });
    present = await tracesIn(service);
    const secretFile = path.join(temporaryDirectory('secret'), 'client-secret');
    writeFileSync(secretFile, upstream.settings().clientSecret ?? '');
    const { id: known } = await service.organizations.add({ name: 'Test Stock' });
    const unknown = `org_${'x'.repeat(16)}`;
    // Its deletion has begun.
    const ended = "INSERT INTO organizations (id, name, created_at, ended_at) VALUES ($1, 'Ended', now(), now())";
    await service.database.query(ended, [unknown]);
    const api = `api: { graphql_url: "https://api.example/", test_organizations: [${known}, ${unknown}] }`;
    const GATEHOUSE_CONFIG = fileWith(
      `${api}\nsign_in: { passwords: false, require: passkey-or-upstream, providers: [{ id: platform, label: a, client_id: gatehouse, client_secret_file: "${secretFile}", issuer: "${upstream.issuer}" }] }`,
    );
    const { healthy, output, of } = await examine({ ...environmentOf(service), GATEHOUSE_CONFIG });
    expect(healthy, output).to.equal(true);
    expect(of('sign_in_providers').message).to.contain('that it has the redirect URI');
    expect(of('test_organizations')).to.include({
      status: 'warning',
      where: 'api.test_organizations',
      message: `there is no organization ${unknown}`,
      remedy: 'remove the id, or correct it',
    });
    expect(of('sign_in').message).to.include('a one-time link signs in');
    expect(of('sign_out').status).to.equal('ok');
    const records = (present.activity ?? 0) + 1;
    expect(await tracesIn(service)).to.deep.equal({ ...present, activity: records });
  });

  it('after an hour the doctor removes what a killed run left behind, and nothing else', async () => {
    const { database, accounts } = service;
    const visitors = createVisitors(database, { by: { operator: 'tests' }, passwords: true });
    const [old, young] = [await visitors.add(), await visitors.add()];
    await database.query('UPDATE accounts SET created_at = created_at - $1::interval WHERE id = $2', [
      '61 minutes',
      old.accountId,
    ]);
    const { of } = await examine(environmentOf(service));
    expect(of('left_over').message).to.contain('1 earlier run');
    accounts.forget(old.accountId);
    expect(await accounts.find(old.accountId)).to.equal(undefined);
    expect(await service.clients.find(old.client.id)).to.equal(undefined);
    expect(await accounts.find(young.accountId)).not.to.equal(undefined);
  });

  it('the doctor never deletes an account that it did not create, or that has access', async () => {
    const { database, accounts, clock, organizations, memberships } = service;
    const doctorAccounts = createDoctorAccounts({ database, accounts, clock });
    const { id: another } = await accounts.add({ email: 'doctor-@example.test', name: 'Dora' });
    expect(await doctorAccounts.remove(another)).to.equal(false);
    expect(await accounts.find(another)).to.include({ name: 'Dora' });
    const { account } = await doctorAccounts.add();
    const { id } = await organizations.add({ name: 'Given' });
    await memberships.setRole({ accountId: account.id }, id, 'viewer');
    expect(await doctorAccounts.remove(account.id)).to.equal(false);
    await memberships.remove({ accountId: account.id }, id);
    expect(await doctorAccounts.remove(account.id)).to.equal(true);
    expect((await accounts.list()).items.map(({ email }) => email)).not.to.include(account.email);
  });
});

describe('operator doctor, interrupted with Ctrl-C', () => {
  const opened = createOpened();
  after(opened.closeAll);

  it('an interrupted doctor reports what it has finished, removes what it created, and reports the removal', async () => {
    const proxy = await opened.add(startReverseProxy(), (one) => one.close());
    const issuer = `http://localhost:${proxy.port}`;
    const service = await opened.add(startTestService({ settings: { issuer } }), (one) => one.close());
    const reached = new Promise<void>((resolve) => {
      proxy.conduct.onStall = resolve;
    });
    proxy.conduct.leadTo = service.settings.server.port;
    const before = await tracesIn(service);
    const child = spawn(process.execPath, [OPERATOR_PROGRAM, 'doctor'], {
      env: environmentOf(service),
    });
    const output = text(child.stdout);
    await reached;
    expect((await tracesIn(service)).accounts).to.equal((before.accounts ?? 0) + 1);
    child.kill('SIGINT');
    const exitCode = await new Promise((resolve) => child.once('close', resolve));
    expect(await output, 'a step before the interruption').to.match(/^ok +exchange /m);
    expect(await output).to.contain('Interrupted. Everything that the doctor created was removed.');
    expect(exitCode).to.equal(130);
    expect(await tracesIn(service)).to.deep.equal({
      ...before,
      activity: (before.activity ?? 0) + 1,
    });
  });
});
