import { expect } from 'chai';
import { withChecksum } from '../../src/base/random-id.ts';
import { partnerTokens, tokensOf } from '../provider/partner-tokens.ts';
import { createTestClock } from '../support/clock.ts';
import { eventually } from '../support/eventually.ts';
import { clientCredentials, exchangeCode, refresh, revokeCurrent, type TestClient } from '../support/oauth.ts';
import { addTestClient, apiKeyOf, seed } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';
import { onPostgresAndRedis } from '../support/service.ts';
import { operatorFor, type RunOperator, refusalFrom, valueFrom } from './run-operator.ts';

const FROM = { address: '192.0.2.1', browser: '' };
const UNKNOWN_ID = 'gate_ci_0000000000000000000000';

onPostgresAndRedis('operator show', (start) => {
  const on = startSeeded({ on: start });
  const run: RunOperator = (...words) => operatorFor(on.service)(...words);

  const show = async (value: string) => (await valueFrom(run, 'show', { input: `${value}\n` }))[0];
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

  it('`show` shows account, client and expiry of a valid token or code, which stays valid', async () => {
    const { confidential, machine } = on.clients;
    const code = await on.partner.code(confidential);
    const { accessToken, refreshToken } = await on.partner.tokens(confidential);
    const { accessToken: machineToken } = tokensOf(await clientCredentials(on.issuer, machine));
    const access = await show(accessToken);
    expect(facts(access)).to.deep.equal({ kind: 'access_token', state: 'active', ...owner() });
    const lifetime = Date.parse(access.expires_at) - Date.parse(access.issued_at);
    expect(lifetime).to.equal(3_600_000);
    expect(facts(await show(code))).to.deep.equal({ kind: 'code', state: 'active', ...owner() });
    const first = await show(refreshToken);
    expect(facts(first)).to.deep.equal({ kind: 'refresh_token', state: 'active', ...owner() });
    expect(first.rotated_at).to.equal(null);
    expect(await show(machineToken)).to.deep.include({
      kind: 'machine_token',
      state: 'active',
      account: null,
    });

    expect((await exchangeCode(on.issuer, confidential, code)).status).to.equal(200);
    expect(await show(code)).to.include({ state: 'used' });
    for (const token of [accessToken, machineToken]) {
      expect(await on.partner.isActive(token)).to.equal(true);
    }
  });

  it('`show` distinguishes current, replaced and reused refresh tokens, without using them', async () => {
    const { refreshToken: oldest } = await on.partner.tokens(on.clients.confidential);
    const { refreshToken: previous } = await renew(oldest);
    const { refreshToken: current, accessToken } = await renew(previous);
    const reused = await show(oldest);
    expect(reused).to.include({ state: 'reused' });
    expect(reused.why).to.contain('2 newer refresh tokens').and.contain(reused.rotated_at);
    const replaced = await show(previous);
    expect(replaced).to.include({ state: 'replaced', rotated_at: reused.rotated_at });
    expect(replaced.why).to.contain('no use of the successor was seen');
    expect(await on.partner.isActive(accessToken)).to.equal(true);
    await eventually(async () => {
      const { state, retry_until: until, rotated_at: at } = await show(previous);
      expect(state).to.equal('replaced');
      expect(Date.parse(until) - Date.parse(at)).to.equal(60_000);
    });
    expect(await show(current)).to.include({ state: 'active' });
    expect((await renew(current)).refreshToken).to.match(/^gate_rt_/);
  });

  it('`show` shows what revoked a token, and when', async () => {
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
        const shown = await show(token);
        expect(shown).to.include({ state: 'revoked' });
        expect(shown.why).to.contain(cause);
        expect(shown.account.email).to.equal(on.seeded.person.email);
        expect(Date.parse(shown.revoked_at)).to.be.closeTo(Date.now(), 600_000);
      }
    }
    expect(await show(code)).to.include({ state: 'revoked' });
  });

  it('`show` shows whether the client or the user of a token is suspended or deleted', async () => {
    const { clients, accounts } = on.service;
    const { otherConfidential, machine } = on.clients;
    const { accessToken } = await on.partner.tokens(otherConfidential);
    const { accessToken: robot } = tokensOf(await clientCredentials(on.issuer, machine));
    await clients.suspend(otherConfidential.id);
    expect(await show(accessToken)).to.include({ state: 'client_suspended' });
    expect(await show(otherConfidential.id)).to.include({ state: 'client_suspended' });
    expect(await show(String(otherConfidential.secret))).to.include({
      kind: 'client_secret',
      state: 'client_suspended',
    });
    await clients.resume(otherConfidential.id);
    await accounts.suspend(on.seeded.person.accountId);
    expect(await show(accessToken)).to.include({ state: 'account_suspended' });
    await accounts.resume(on.seeded.person.accountId);
    await valueFrom(run, `revoke --client ${machine.id} --yes`);
    const ended = await show(robot);
    expect(ended).to.include({ state: 'revoked' });
    expect(ended.revoked_at).to.be.a('string');
    await valueFrom(run, `clients delete ${otherConfidential.id} --yes`);
    const gone = await show(accessToken);
    expect(gone).to.include({ state: 'revoked' });
    expect(gone.why).to.contain('client was deleted');
    const client = await show(otherConfidential.id);
    expect(client.why).to.match(/^Client deleted: .*, by the operator\.$/);
  });

  it('`show` distinguishes tokens issued before a renewal of the client from newer ones', async () => {
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
    const ended = await show(String(client.secret));
    expect(ended).to.include({ kind: 'client_secret', state: 'revoked' });
    expect(ended.client.id).to.equal(client.id);
    expect(ended.why).to.contain('renewed after a theft').and.contain('by the operator');
    expect(Date.parse(ended.revoked_at)).to.be.closeTo(Date.now(), 600_000);
    for (const value of [code, before.accessToken, ofRobot]) {
      const shown = await show(value);
      expect(shown).to.include({ state: 'revoked' });
      expect(shown.why).to.equal('It was issued before the client was renewed after a theft.');
      expect(shown.remedy).to.contain('new secret');
      expect(Date.parse(shown.revoked_at)).to.be.closeTo(Date.now(), 600_000);
    }
    const waiting = await show(before.refreshToken);
    expect(waiting).to.include({ state: 'replaced' });
    expect(waiting.why).to.contain('it works once more, only with a secret of after that');
    const lifted = tokensOf(await refresh(on.issuer, after, before.refreshToken));
    for (const value of [lifted.accessToken, lifted.refreshToken, await machineToken(newRobot)]) {
      expect(await show(value)).to.include({ state: 'active' });
    }
  });

  it('after a renewal, `show` says that earlier refresh tokens can still be retried, until the second refresh', async () => {
    const client = await addTestClient(on.service, 'Robbed Courier');
    const first = await on.partner.tokens(client);
    const second = tokensOf(await refresh(on.issuer, client, first.refreshToken));
    const after = { ...client, secret: (await on.service.clients.renew(client.id)).secret };
    const lifted = tokensOf(await refresh(on.issuer, after, second.refreshToken));
    for (const value of [first, second]) {
      const shown = await show(value.refreshToken);
      expect(shown).to.include({ state: 'replaced' });
      expect(shown.why).to.contain('A retry still returns the same successor');
    }
    expect(tokensOf(await refresh(on.issuer, after, first.refreshToken)).refreshToken).to.equal(lifted.refreshToken);
    await refresh(on.issuer, after, lifted.refreshToken);
    expect(await show(second.refreshToken)).to.include({ state: 'reused' });
  });

  it('`show` shows when the operator ended everything of a client, even before all connections are marked', async () => {
    const client = await addTestClient(on.service, 'Ended Planner');
    const { accessToken } = await on.partner.tokens(client);
    await on.service.clients.revoke(client.id, (tx) =>
      on.service.activity.record(
        { action: 'client_tokens_revoked', actor: 'operator', details: { client_id: client.id } },
        tx,
      ),
    );
    const shown = await show(accessToken);
    expect(shown).to.include({ state: 'revoked' });
    expect(shown.why).to.contain('ended everything');
    expect(Date.parse(shown.revoked_at)).to.be.closeTo(Date.now(), 600_000);
  });

  it('`show` shows the owner of a client secret or API key, and when it was removed', async () => {
    const { confidential } = on.clients;
    const secret = String(confidential.secret);
    const live = await show(secret);
    expect(live).to.include({ state: 'active', last_four: secret.slice(-4) });
    expect(live.client.id).to.equal(confidential.id);
    await valueFrom(run, `clients rotate-secret ${confidential.id}`);
    const end = `--secret=${secret.slice(-4)}`;
    await valueFrom(run, `clients remove-secret ${confidential.id} ${end} --yes`);
    const removed = await show(secret);
    expect(removed).to.include({ state: 'revoked' });
    expect(removed.client.id).to.equal(confidential.id);

    const { accountId } = on.seeded.person;
    const { id, value } = await apiKeyOf(on.service, on.seeded.person);
    expect(await show(value)).to.include({ kind: 'api_key', state: 'active' });
    await on.service.apiKeys.revoke(accountId, id, FROM);
    const revoked = await show(value);
    expect(revoked).to.include({ state: 'revoked' });
    expect(revoked.why).to.match(/^No account has this key\. About one with the same last characters, .*by a person/);
    const other = await show(withChecksum(`gate_key_${'y'.repeat(43)}`));
    expect(other).to.include({ state: 'unknown', last_four: withChecksum(`gate_key_${'y'.repeat(43)}`).slice(-4) });
  });

  it('`show` says that a value was never issued or has a wrong format, and never prints the value', async () => {
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
      expect(await show(value), value).to.include({ state: 'unknown' });
    }
    const answer = await run('show - --json', `${accessToken}\u200b\n`);
    const [shown] = JSON.parse(answer.output);
    expect(shown).to.include({ kind: 'access_token', state: 'malformed' });
    expect(answer.exitCode).to.equal(1);
    expect((await run('show garbage')).exitCode).to.equal(1);
    expect(shown.why).to.contain('after character 103');
    expect(answer.output).not.to.contain(accessToken);
  });

  it('`show` answers once for each value in a text, in the order of the text', async () => {
    const { machine } = on.clients;
    const first = await on.partner.tokens(on.clients.public);
    const second = await on.partner.tokens(on.clients.public);
    const { email } = on.seeded.person;
    const text = [
      `[{"token":"${first.accessToken}","url":"https://paste.example/1"},`,
      `  curl -H 'Authorization: Bearer ${second.accessToken}' "https://api.example/?a=1",`,
      `secret=${machine.secret}; again ${first.accessToken}. Mail <${email}>`,
      `${second.refreshToken.slice(0, -2)} counterrevolutionaries of acc_ and req_`,
    ].join('\n');
    const inText = () => valueFrom(run, 'show -', { input: text, exitCode: 1 });
    const statesOf = (answers: Record<string, string>[]) => answers.map(({ kind, state }) => `${kind} ${state}`);
    expect(statesOf(await inText())).to.deep.equal([
      'access_token active',
      'access_token active',
      'client_secret active',
      'email active',
      'refresh_token malformed',
    ]);
    await run('leaked -', first.accessToken);
    expect(statesOf(await inText()).slice(0, 2)).to.deep.equal(['access_token revoked', 'access_token active']);
    const { output } = await run('show -', text);
    expect(output).to.contain(`gate_at_…${second.accessToken.slice(-4)}`);
    for (const secret of [first.accessToken, second.accessToken, String(machine.secret)]) {
      expect(output).not.to.contain(secret);
    }
    const [nothing, ...others] = await valueFrom(run, 'show -', { input: 'no value is here', exitCode: 1 });
    expect(others).to.deep.equal([]);
    expect(nothing.why).to.equal('The text contains no value or ID of Gatehouse.');
  });

  it('`show` refuses a text with more than 1000 values', async () => {
    const values = Array.from({ length: 1_001 }, (_, n) => `req_${String(n).padStart(16, '0')}`).join(' ');
    expect((await refusalFrom(run, 'show -', values)).code).to.equal('too_many_values');
  });

  it('`show` reports a token as revoked from the end of its time limit, before a job records it', async () => {
    const client = await addTestClient(on.service, 'Limited Planner');
    const { accountId } = on.seeded.person;
    const { accessToken } = await on.partner.tokens(client);
    expect(await show(accessToken)).to.include({ state: 'active' });
    await on.service.database.query(
      `UPDATE connections SET limit_until = now() - interval '1 second' WHERE account_id = $1 AND client_id = $2`,
      [accountId, client.id],
    );
    const shown = await show(accessToken);
    expect(shown).to.include({ state: 'revoked' });
    expect(shown.why).to.equal('The time limit of the connection has passed.');
  });

  it('without the token keys, `show` shows everything except whether a refresh token is genuine', async () => {
    const { refreshToken } = await on.partner.tokens(on.clients.public);
    const [unkeyed] = await valueFrom(operatorFor(on.service, {}), `show ${refreshToken}`);
    expect(unkeyed).to.include({ state: 'active' });
    expect(unkeyed.why).to.contain('not checked');
    const GATEHOUSE_TOKEN_KEYS = 'k'.repeat(40);
    const others = { GATEHOUSE_TOKEN_KEYS, GATEHOUSE_COOKIE_KEYS: GATEHOUSE_TOKEN_KEYS };
    const [foreign] = await valueFrom(operatorFor(on.service, others), `show ${refreshToken}`);
    expect(foreign).to.include({ state: 'unknown' });
    const { output } = await run(`show ${refreshToken}`);
    expect(output).to.match(
      /^Refresh token: active\nThis is the current refresh token\.\nValue +gate_rt_….{4}\nAccount +grace@/,
    );
    expect(output).not.to.contain(refreshToken);
  });
});

onPostgresAndRedis('operator show, after expiry', (start) => {
  it('`show` reports expired tokens, including a replaced refresh token that could still be retried', async () => {
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
      const show = async (value: string) => (await valueFrom(operatorFor(service), `show ${value}`))[0];
      for (const value of [accessToken, code, next.refreshToken, refreshToken]) {
        const shown = await show(value);
        expect(shown, value.slice(0, 7)).to.include({ state: 'expired' });
        expect(shown.account.email).to.equal(seeded.person.email);
      }
      expect((await show(accessToken)).why).to.contain('and the last refresh token of its authorization have expired');
    } finally {
      restore();
    }
  });
});
