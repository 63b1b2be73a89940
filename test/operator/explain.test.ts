import { expect } from 'chai';
import { withChecksum } from '../../src/base/random-id.ts';
import { partnerTokens, tokensOf } from '../provider/partner-tokens.ts';
import { createTestClock } from '../support/clock.ts';
import { eventually } from '../support/eventually.ts';
import { clientCredentials, exchangeCode, refresh, revokeCurrent, type TestClient } from '../support/oauth.ts';
import { addTestClient, seed } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';
import { forEachDeployment } from '../support/service.ts';
import { operatorFor, type RunOperator, valueFrom } from './run-operator.ts';

const FROM = { address: '192.0.2.1', browser: '' };
const UNKNOWN_ID = 'gate_ci_0000000000000000000000';

forEachDeployment('operator explain', (start) => {
  const on = startSeeded({ on: start });
  const run: RunOperator = (...words) => operatorFor(on.service)(...words);

  const explain = (value: string) => valueFrom(run, 'explain', { input: `${value}\n` });
  const renew = async (token: string) => tokensOf(await refresh(on.issuer, on.clients.confidential, token));
  const owner = () => {
    const { person, clients } = on.seeded;
    return { account: person.email, client: clients.confidential.id };
  };
  const facts = ({ kind, state, account, client }: Record<string, Record<string, unknown>>) => ({
    kind,
    state,
    account: account?.email,
    client: client?.id,
  });

  it('`explain` shows account, client and expiry of a valid token or code, which stays valid', async () => {
    const { confidential, machine } = on.clients;
    const code = await on.partner.code(confidential);
    const { accessToken, refreshToken } = await on.partner.tokens(confidential);
    const { accessToken: machineToken } = tokensOf(await clientCredentials(on.issuer, machine));
    const access = await explain(accessToken);
    expect(facts(access)).to.deep.equal({ kind: 'access_token', state: 'active', ...owner() });
    const lifetime = Date.parse(access.expires_at) - Date.parse(access.issued_at);
    expect(lifetime).to.equal(3_600_000);
    expect(facts(await explain(code))).to.deep.equal({ kind: 'code', state: 'active', ...owner() });
    const first = await explain(refreshToken);
    expect(facts(first)).to.deep.equal({ kind: 'refresh_token', state: 'active', ...owner() });
    expect(first.rotated_at).to.equal(null);
    expect(await explain(machineToken)).to.deep.include({
      kind: 'machine_token',
      state: 'active',
      account: null,
    });

    expect((await exchangeCode(on.issuer, confidential, code)).status).to.equal(200);
    expect(await explain(code)).to.include({ state: 'used' });
    for (const token of [accessToken, machineToken]) {
      expect(await on.partner.isActive(token)).to.equal(true);
    }
  });

  it('`explain` distinguishes current, replaced and reused refresh tokens, without using them', async () => {
    const { refreshToken: oldest } = await on.partner.tokens(on.clients.confidential);
    const { refreshToken: previous } = await renew(oldest);
    const { refreshToken: current, accessToken } = await renew(previous);
    const reused = await explain(oldest);
    expect(reused).to.include({ state: 'reused' });
    expect(reused.why).to.contain('2 newer refresh tokens').and.contain(reused.rotated_at);
    const replaced = await explain(previous);
    expect(replaced).to.include({ state: 'replaced', rotated_at: reused.rotated_at });
    expect(replaced.why).to.contain('no use of the successor was seen');
    expect(await on.partner.isActive(accessToken)).to.equal(true);
    await eventually(async () => {
      const { state, retry_until: until, rotated_at: at } = await explain(previous);
      expect(state).to.equal('replaced');
      expect(Date.parse(until) - Date.parse(at)).to.equal(60_000);
    });
    expect(await explain(current)).to.include({ state: 'active' });
    expect((await renew(current)).refreshToken).to.match(/^gate_rt_/);
  });

  it('`explain` shows what revoked a token, and when', async () => {
    const { confidential, otherConfidential } = on.clients;
    const given = await on.partner.tokens(confidential);
    await revokeCurrent(on.issuer, given.accessToken);

    const replayed = await on.partner.tokens(confidential);
    const { refreshToken } = await renew(replayed.refreshToken);
    await renew(refreshToken);
    await renew(replayed.refreshToken);

    const code = await on.partner.code(confidential);
    const exchanged = tokensOf(await exchangeCode(on.issuer, confidential, code));
    await exchangeCode(on.issuer, confidential, code);

    const byOperator = await on.partner.tokens(confidential);
    await valueFrom(run, `revoke --token ${byOperator.accessToken}`);

    const ended = await on.partner.tokens(otherConfidential);
    await (await on.partner.askToDisconnect(otherConfidential))();
    for (const [tokens, cause] of [
      [given, 'by the app itself'],
      [replayed, 'a refresh token was presented that had been replaced'],
      [exchanged, 'an authorization code was presented a second time'],
      [byOperator, 'by the operator'],
      [ended, 'by its user'],
    ] as const) {
      for (const token of [tokens.accessToken, tokens.refreshToken]) {
        const explained = await explain(token);
        expect(explained).to.include({ state: 'revoked' });
        expect(explained.why).to.contain(cause);
        expect(explained.account.email).to.equal(on.seeded.person.email);
        expect(Date.parse(explained.revoked_at)).to.be.closeTo(Date.now(), 60_000);
      }
    }
    expect(await explain(code)).to.include({ state: 'revoked' });
  });

  it('`explain` says if the client or the user of a token is suspended or deleted', async () => {
    const { clients, accounts } = on.service;
    const { otherConfidential, machine } = on.clients;
    const { accessToken } = await on.partner.tokens(otherConfidential);
    const { accessToken: robot } = tokensOf(await clientCredentials(on.issuer, machine));
    await clients.suspend(otherConfidential.id);
    expect(await explain(accessToken)).to.include({ state: 'client_suspended' });
    expect(await explain(otherConfidential.id)).to.include({ state: 'client_suspended' });
    expect(await explain(String(otherConfidential.secret))).to.include({
      kind: 'client_secret',
      state: 'client_suspended',
    });
    await clients.resume(otherConfidential.id);
    await accounts.suspend(on.seeded.person.accountId);
    expect(await explain(accessToken)).to.include({ state: 'account_suspended' });
    await accounts.resume(on.seeded.person.accountId);
    await valueFrom(run, `revoke --client ${machine.id} --yes`);
    const ended = await explain(robot);
    expect(ended).to.include({ state: 'revoked' });
    expect(ended.revoked_at).to.be.a('string');
    await valueFrom(run, `clients delete ${otherConfidential.id} --yes`);
    const gone = await explain(accessToken);
    expect(gone).to.include({ state: 'revoked' });
    expect(gone.why).to.contain('client was deleted');
    const client = await explain(otherConfidential.id);
    expect(client.why).to.equal('The client was deleted by the operator, for good.');
  });

  it('`explain` distinguishes what was issued before a renewal of the client from what is newer', async () => {
    const client = await addTestClient(on.service, 'Robbed Planner');
    const robot = await addTestClient(on.service, 'Robbed Robot', { kind: 'machine' });
    const machineToken = async (of: TestClient) => tokensOf(await clientCredentials(on.issuer, of)).accessToken;
    const code = await on.partner.code(client);
    const before = await on.partner.tokens(client);
    const ofRobot = await machineToken(robot);
    const renewed = async (of: TestClient) => ({
      ...of,
      secret: (await valueFrom(run, `clients renew ${of.id} --yes`)).client_secret,
    });
    const [after, newRobot] = [await renewed(client), await renewed(robot)];
    for (const value of [code, before.accessToken, ofRobot]) {
      const explained = await explain(value);
      expect(explained).to.include({ state: 'revoked' });
      expect(explained.why).to.equal('It was issued before the client was renewed after a theft.');
      expect(explained.remedy).to.contain('new secret');
      expect(Date.parse(explained.revoked_at)).to.be.closeTo(Date.now(), 60_000);
    }
    const waiting = await explain(before.refreshToken);
    expect(waiting).to.include({ state: 'replaced' });
    expect(waiting.why).to.contain('it works once more, only with a secret of after that');
    const lifted = tokensOf(await refresh(on.issuer, after, before.refreshToken));
    for (const value of [lifted.accessToken, lifted.refreshToken, await machineToken(newRobot)]) {
      expect(await explain(value)).to.include({ state: 'active' });
    }
  });

  it('`explain` shows the owner of a client secret or API key, and when it was removed', async () => {
    const { confidential } = on.clients;
    const secret = String(confidential.secret);
    const live = await explain(secret);
    expect(live).to.include({ state: 'active', last_four: secret.slice(-4) });
    expect(live.client.id).to.equal(confidential.id);
    await valueFrom(run, `clients rotate-secret ${confidential.id}`);
    const end = `--secret=${secret.slice(-4)}`;
    await valueFrom(run, `clients remove-secret ${confidential.id} ${end} --yes`);
    const removed = await explain(secret);
    expect(removed).to.include({ state: 'revoked' });
    expect(removed.client.id).to.equal(confidential.id);

    const { accountId } = on.seeded.person;
    const made = { accountId, name: 'Export', expiresInDays: 30 };
    const { key, value } = await on.service.apiKeys.add(made, FROM);
    expect(await explain(value)).to.include({ kind: 'api_key', state: 'active' });
    await on.service.apiKeys.revoke(accountId, key.id, FROM);
    const revoked = await explain(value);
    expect(revoked).to.include({ state: 'revoked' });
    expect(revoked.why).to.contain('by a person');
  });

  it('`explain` says that a value was never issued or has a wrong format, and never prints the value', async () => {
    const x = (length: number) => 'x'.repeat(length);
    const { accessToken } = await on.partner.tokens(on.clients.public);
    for (const value of [
      withChecksum(`gate_at_${x(89)}`),
      withChecksum(`gate_mt_${x(43)}`),
      withChecksum(`gate_ac_${x(65)}`),
      withChecksum(`gate_rt_${x(65)}0`),
      withChecksum(`gate_cs_${x(43)}`),
      withChecksum(`gate_key_${x(43)}`),
      UNKNOWN_ID,
    ]) {
      expect(await explain(value), value).to.include({ state: 'unknown' });
    }
    const answer = await run('explain - --json', `${accessToken}\r\n\n`);
    const explained = JSON.parse(answer.output);
    expect(explained).to.include({ kind: 'access_token', state: 'malformed' });
    expect(answer.exitCode).to.equal(1);
    expect((await run('explain garbage')).exitCode).to.equal(1);
    expect(explained.why).to.contain('after character 103');
    expect(answer.output).not.to.contain(accessToken);
  });

  it('without the token keys, `explain` shows all except whether a refresh token is genuine', async () => {
    const { refreshToken } = await on.partner.tokens(on.clients.public);
    const unkeyed = await valueFrom(operatorFor(on.service, {}), `explain ${refreshToken}`);
    expect(unkeyed).to.include({ state: 'active' });
    expect(unkeyed.why).to.contain('not checked');
    const GATEHOUSE_TOKEN_KEYS = 'k'.repeat(40);
    const others = { GATEHOUSE_TOKEN_KEYS, GATEHOUSE_COOKIE_KEYS: GATEHOUSE_TOKEN_KEYS };
    const foreign = await valueFrom(operatorFor(on.service, others), `explain ${refreshToken}`);
    expect(foreign).to.include({ state: 'unknown' });
    const { output } = await run(`explain ${refreshToken}`);
    expect(output).to.match(/^Refresh token: active\nThis is the current refresh token\.\nAccount +grace@/);
    expect(output).not.to.contain(refreshToken);
  });
});

forEachDeployment('operator explain, after expiry', (start) => {
  it('`explain` reports expired tokens, including a replaced refresh token that could still be retried', async () => {
    // The clock of the service is 65 minutes behind that of the command.
    const { clock, restore } = createTestClock(new Date(Date.now() - 65 * 60_000));
    try {
      const settings = { tokens: { refreshTokenSeconds: 3_600 } };
      const service = await start({ clock, settings });
      const seeded = await seed(service);
      const { confidential } = seeded.clients;
      const partner = partnerTokens(service.issuer, seeded);
      const code = await partner.code(confidential);
      const { accessToken, refreshToken } = await partner.tokens(confidential);
      const next = tokensOf(await refresh(service.issuer, confidential, refreshToken));
      restore();
      const explain = (value: string) => valueFrom(operatorFor(service), `explain ${value}`);
      for (const value of [accessToken, code, next.refreshToken, refreshToken]) {
        const explained = await explain(value);
        expect(explained, value.slice(0, 7)).to.include({ state: 'expired' });
        expect(explained.account.email).to.equal(seeded.person.email);
      }
    } finally {
      restore();
    }
  });
});
