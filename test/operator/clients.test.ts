import { expect } from 'chai';
import { createConnections } from '../../src/authorizations/connections.ts';
import { createClientRegistry } from '../../src/clients/client-registry.ts';
import { matchesSecret } from '../clients/drafts.ts';
import { startMailServer } from '../support/mail-server.ts';
import { setUpOperator } from './operator-suite.ts';
import { expectWrongUsage, valueFrom } from './run-operator.ts';

const NO_CLIENT = 'gate_ci_0000000000000000000000';

describe('operator clients', () => {
  const { run, value, refusal, parts, records, mailing } = setUpOperator();
  let ada: string;
  let bob: string;

  before(async () => {
    const add = async (name: string) =>
      (await value(`accounts add --email ${name}@example.test --name ${name} --generate-password`)).account_id;
    [ada, bob] = [await add('ada'), await add('bob')];
  });
  beforeEach(records);

  const addClient = (options: string) => value(`clients add --name App ${options}`);
  const addOwned = () =>
    addClient('--kind confidential --redirect-uri https://app.example/cb --owner ada@example.test');
  const find = (id: string) => createClientRegistry(parts()).find(id);
  /** The expected log entry about a client that this account owns. */
  const change = (action: string, account_id: string | null, { id }: { id: string }, more = {}) => ({
    action,
    account_id,
    details: { client_id: id, client_name: 'App', ...more },
  });

  it('`clients add` registers clients of every kind, and shows a secret only once', async () => {
    const owned = await addOwned();
    expect(owned).to.include({ kind: 'confidential', owner_name: 'ada', native: false });
    expect(owned.client_secret).to.match(/^gate_cs_/);
    const [secret] = owned.secrets;
    expect(secret).to.have.all.keys('id', 'last_four', 'created_at', 'last_used_at', 'leaked_at', 'refused_at');
    expect(matchesSecret(await find(owned.client_id), owned.client_secret)).to.equal(true);

    const schemes = '--redirect-uri com.example.app:/cb --redirect-uri http://[::1]/cb';
    const native = await addClient(`--kind public --native ${schemes}`);
    expect(native).to.include({ native: true }).and.not.have.property('client_secret');
    expect(native.redirect_uris).to.deep.equal(['com.example.app:/cb', 'http://[::1]/cb']);
    const server = await addClient('--kind resource-server');
    expect(server.client_secret).to.be.a('string');
    const shown = await run(`show ${owned.client_id}`);
    expect(shown.output).to.contain('https://app.example/cb').and.contain('never used');
    const { client_secret: _secret, ...kept } = owned;
    expect(await value(`clients show ${owned.client_id}`)).to.deep.equal({ ...kept, problems: [] });
    const listed = await run('clients list --json');
    expect(JSON.parse(listed.output).map(({ id }: { id: string }) => id)).to.include.members([
      owned.id,
      native.id,
      server.id,
    ]);
    const recorded = await records();
    expect(recorded).to.deep.equal([
      change('client_added', ada, owned),
      change('client_added', null, native),
      change('client_added', null, server),
    ]);
    for (const text of [shown.output, listed.output, JSON.stringify(recorded)]) {
      expect(text).not.to.contain(owned.client_secret);
    }
  });

  it('`clients add` accepts a misleading client name only with --allow-name', async () => {
    const add = 'clients add --kind machine --name';
    expect((await refusal(`${add} Gatehouse`)).code).to.equal('client_invalid');
    const robot = await value(`${add} Gatehouse --allow-name`);
    const update = `clients update ${robot.id} --name`;
    expect((await refusal(`${update} storm.de`)).code).to.equal('client_invalid');
    expect(await value(`${update} storm.de --allow-name`)).to.include({ name: 'storm.de' });
    const refused = await refusal(`${update} Support`);
    expect(refused.problems).to.have.length(1);
    expect(refused.problems[0]).to.have.all.keys('code', 'message').and.include({
      code: 'name_reserved',
    });
    expect(await value(`${update} Support --allow-name`)).to.include({ name: 'Support' });
  });

  it('no command accepts a secret as a name, and none records it', async () => {
    const secret = `gate_rt_${'r'.repeat(66)}`;
    const robot = await addClient('--kind machine');
    const { id: place } = await value('organizations add --name Nord');
    const { id: hall } = await value(`warehouses add --organization ${place} --name Hall`);
    for (const line of [
      'clients add --kind machine --allow-name',
      `clients update ${robot.id}`,
      'accounts add --email eve@example.test --generate-password',
      'accounts update ada@example.test',
      'organizations add',
      `organizations update ${place}`,
      `warehouses add --organization ${place}`,
      `warehouses update ${hall}`,
    ]) {
      const error = await refusal(`${line} --name ${secret}`);
      expect(`${error.message} ${error.remedy}`, line).to.match(/looks like a secret.* revoked/);
      expect(JSON.stringify(error), line).not.to.include(secret);
    }
    await expectWrongUsage(run, [`clients suspend ${robot.id} --reason ${secret}`]);
    expect(JSON.stringify(await value('audit --limit 100'))).not.to.include('gate_rt_');
  });

  it('commands suspend and resume a client', async () => {
    const app = await addOwned();
    expect((await run(`clients suspend ${app.id}`)).output).to.match(/State +suspended/);
    expect(await find(app.id)).to.include({ isSuspended: true });
    expect(await value(`clients resume ${app.id}`)).to.include({ suspended: false });
    expect((await records()).slice(1)).to.deep.equal([
      change('client_suspended', ada, app),
      change('client_resumed', ada, app),
    ]);
  });

  it('commands rotate the secret of any client, and remove the old secret, but never the last one', async () => {
    const robot = await addClient('--kind machine');
    const rotated = await value(`clients rotate-secret ${robot.id}`);
    expect(rotated.client_secret).to.match(/^gate_cs_/);
    expect(rotated.client_secret).not.to.equal(robot.client_secret);
    expect(rotated.secrets).to.have.length(2);
    for (const secret of [robot.client_secret, rotated.client_secret]) {
      expect(matchesSecret(await find(robot.id), secret)).to.equal(true);
    }
    const [old, current] = [robot, rotated].map(({ client_secret }) => client_secret.slice(-4));
    const remove = `clients remove-secret ${robot.id}`;
    expect((await refusal(`${remove} --secret=${old}`)).code).to.equal('confirmation_needed');
    const left = await value(`${remove} --secret=${old} --yes`);
    expect(left.secrets).to.have.length(1);
    expect(matchesSecret(await find(robot.id), robot.client_secret)).to.equal(false);
    for (const [secret, code] of [
      [left.secrets[0].id, 'secret_last'],
      ['nope', 'secret_unknown'],
    ]) {
      expect((await refusal(`${remove} --secret=${secret}`)).code).to.equal(code);
    }
    const shown = await run(`clients rotate-secret ${robot.id}`);
    expect(shown.output).to.match(/^Client secret: gate_cs_\S+ \(shown only once\)\n/);
    expect((await records()).slice(1, 3)).to.deep.equal([
      change('client_secret_added', null, robot, { last_four: current }),
      change('client_secret_removed', null, robot, { last_four: old }),
    ]);
  });

  it('`clients renew` replaces all secrets by one, shown once, and refuses a second renewal or an unsuitable client', async () => {
    const app = await addOwned();
    const rotated = await value(`clients rotate-secret ${app.id}`);
    await value(`clients suspend ${app.id}`);
    await records();
    const renew = `clients renew ${app.id}`;
    expect((await refusal(renew)).code).to.equal('confirmation_needed');
    const mailServer = await startMailServer();
    const renewed = await valueFrom(mailing(mailServer.url), `${renew} --yes`);
    await mailServer.close();
    expect(mailServer.received.map(({ to }) => to)).to.deep.equal([['ada@example.test']]);
    expect(mailServer.received[0]?.text).to.include('was renewed after a theft');
    expect(renewed.secrets).to.have.length(1);
    expect(renewed).to.include({ suspended: true });
    expect(Date.parse(renewed.renewed_at)).to.be.closeTo(Date.now(), 60_000);
    const accepted = [app, rotated, renewed].map(async ({ client_secret: secret }) =>
      matchesSecret(await find(app.id), secret),
    );
    expect(await Promise.all(accepted)).to.deep.equal([false, false, true]);
    const again = await refusal(`${renew} --yes`);
    expect(again.code).to.equal('renewed_just_now');
    expect(again.message).to.contain('renewed a moment ago');
    expect(matchesSecret(await find(app.id), renewed.client_secret)).to.equal(true);
    expect(await records()).to.deep.equal([
      change('client_renewed', ada, app, {
        last_four: renewed.client_secret.slice(-4),
        ended_secrets: [app.client_secret, rotated.client_secret].map((secret) => secret.slice(-4)).sort(),
      }),
    ]);
    expect((await run(`show ${app.id}`)).output).to.match(/Renewed +20\d\d-/);

    const unmailed = await addOwned();
    const { exitCode, ...printed } = await mailing(mailServer.url)(`clients renew ${unmailed.id} --yes`);
    expect(exitCode).to.equal(0);
    expect(printed.errors).to.contain('Warning: its owner was not mailed');
    const [, only = ''] = /^Client secret: (gate_cs_\S+) /.exec(printed.output) ?? [];
    expect(matchesSecret(await find(unmailed.id), only)).to.equal(true);

    const robot = await addClient('--kind machine');
    const { output } = await run(`clients renew ${robot.id} --yes`);
    expect(output).to.match(/^Client secret: gate_cs_\S+ \(shown only once\)\n/);
    expect(output).to.contain('All other secrets, access tokens and codes of the client have ended.');

    const phone = await addClient('--kind public --redirect-uri https://app.example/cb');
    const server = await addClient('--kind resource-server');
    for (const [{ id }, instead] of [
      [phone, 'revoke --client'],
      [server, 'clients rotate-secret'],
    ]) {
      const refused = await refusal(`clients renew ${id}`);
      expect(refused.code).to.equal('not_renewable');
      expect(refused.remedy).to.contain(instead);
    }
  });

  it('two secrets with the same last four characters can be removed only by their IDs', async () => {
    const robot = await addClient('--kind machine');
    const rotated = await value(`clients rotate-secret ${robot.id}`);
    const same = "UPDATE client_secrets SET last_four = 'same' WHERE client_id = $1";
    await parts().database.query(same, [robot.id]);
    const remove = `clients remove-secret ${robot.id} --yes`;
    expect((await refusal(`${remove} --secret=same`)).code).to.equal('secret_unknown');
    const isAccepted = async (secret: string) => matchesSecret(await find(robot.id), secret);
    const both = [robot.client_secret, rotated.client_secret];
    expect(await Promise.all(both.map(isAccepted))).to.deep.equal([true, true]);
    await value(`${remove} --secret=${robot.secrets[0].id}`);
    expect(await Promise.all(both.map(isAccepted))).to.deep.equal([false, true]);
  });

  it('`clients transfer` gives a client to another owner, and both owners see it in their activity', async () => {
    const app = await addOwned();
    const transfer = `clients transfer ${app.id}`;
    const moved = await value(`${transfer} --owner bob@example.test`);
    expect(moved).to.include({ owner_account_id: bob, owner_name: 'bob' });
    expect((await records()).slice(1)).to.have.deep.members([
      change('client_transferred', ada, app),
      change('client_transferred', bob, app),
    ]);
    const provided = await value(`${transfer} --to-operator`);
    expect(provided).to.include({ owner_account_id: null, owner_name: null });
    const marked = await run(`clients update ${app.id} --verified`);
    expect(marked.output).to.match(/Name .*Verified in the state shown here\. If you reviewed another state/s);
    await records();
    const again = await run(`${transfer} --to-operator`);
    expect(again).to.include({ exitCode: 0 });
    expect(again.output).to.match(/Verified +20.*Nothing changed: same owner\./s);
    expect(await records()).to.deep.equal([]);
    // Other tests add clients with this name, which a verified client reserves.
    await value(`clients update ${app.id} --unverified`);
    const nobody = await refusal(`${transfer} --owner nobody@example.test`);
    expect(nobody.code).to.equal('account_unknown');
    await expectWrongUsage(run, [transfer, `${transfer} --owner ada --to-operator`]);
  });

  it('`clients delete` deletes a client with all its connections', async () => {
    const app = await addOwned();
    const connections = createConnections(parts());
    const connection = { accountId: bob, clientId: app.id };
    await connections.rememberConsent({ ...connection, name: 'App', hosts: [] });

    const deleted = await value(`clients delete ${app.id} --yes`);
    expect(deleted).to.include({ client_id: app.id, deleted: true, disconnected_people: 1 });
    expect(await find(app.id)).to.equal(undefined);
    expect(await connections.find(bob, app.id)).to.equal(undefined);
    expect((await records()).at(-1)).to.deep.equal(change('client_deleted', ada, app, { people: 1 }));
    const other = await addOwned();
    expect((await run(`clients delete ${other.id} --yes`)).output).to.equal(
      `Deleted client ${other.id}: App. Disconnected people: 0.\n`,
    );
  });

  it('client commands refuse unknown clients, invalid values and wrong usage', async () => {
    for (const [code, line] of [
      ['client_unknown', `clients transfer ${NO_CLIENT} --to-operator`],
      ['client_unknown', `clients rotate-secret ${NO_CLIENT}`],
      ['client_unknown', `clients remove-secret ${NO_CLIENT} --secret sec_`],
      ['client_unknown', `clients delete ${NO_CLIENT}`],
      ['client_invalid', 'clients add --kind confidential --name App'],
    ] as const) {
      const error = await refusal(line);
      expect(error, line).to.include({ code });
      expect(error.remedy, line).to.be.a('string').and.not.equal('');
    }
    await expectWrongUsage(run, [
      'clients transfer',
      'clients rotate-secret',
      'clients remove-secret',
      'clients delete',
    ]);
    const phone = await addClient('--kind public --native --redirect-uri com.example.app:/cb');
    const { code } = await refusal(`clients rotate-secret ${phone.id}`);
    expect(code).to.equal('secret_unused');
  });

  it('a change of a verified client removes the verification', async () => {
    const owned = await addOwned();
    const update = (options: string) => value(`clients update ${owned.id} ${options}`);
    expect(await update('--verified')).to.include({ verified: true });
    const shown = `show ${owned.id}`;
    expect((await run(shown)).output).to.match(/Verified +20\d\d-/);
    await update('--verified --homepage https://app.example/ --privacy https://app.example/p');
    expect((await find(owned.id))?.isVerified).to.equal(true);
    expect(await update('--unverified')).to.include({ verified: false, verified_at: null });
    await update('--verified');
    const renamed = await update('--name Renamed --privacy=');
    expect(renamed).to.deep.include({
      verified: false,
      links: { homepage: 'https://app.example/' },
    });
    await update('--verified');
    expect(await update('--redirect-uri https://other.example/cb')).to.include({ verified: false });
    expect(await update('--homepage=')).to.deep.include({ links: {} });
    for (const url of ['http://app.example/', 'https://a@app.example/', 'https://app.example/é', 'x']) {
      expect(await refusal(`clients update ${owned.id} --support ${url}`), url).to.include({
        code: 'client_invalid',
      });
    }
    await expectWrongUsage(run, [`clients update ${owned.id}`]);
  });
});
