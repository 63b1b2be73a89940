/** `show` of tokens, codes, secrets and keys, and of ids in logs and on pages, links and URLs of pages. */
import { expect } from 'chai';
import { ENDS } from '../../src/accounts/activity/audit.ts';
import { withChecksum } from '../../src/base/random-id.ts';
import { signedIn } from '../pages/signed-in-person.ts';
import { granted, tokensOf } from '../provider/partner-tokens.ts';
import { eventually } from '../support/eventually.ts';
import {
  authorizationUrl,
  clientCredentials,
  exchangeCode,
  introspect,
  refresh,
  revokeCurrent,
  type TestClient,
} from '../support/oauth.ts';
import { createPerson } from '../support/person.ts';
import { addPerson, addTestClient, addUnusablePasskey, apiKeyOf } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';
import { onPostgresAndRedis } from '../support/service.ts';
import { operatorFor, type RunOperator, refusalFrom, valueFrom } from './run-operator.ts';

onPostgresAndRedis('operator show', (start) => {
  const on = startSeeded({ on: start });
  const run: RunOperator = (...words) => operatorFor(on.service)(...words);

  const value = (words: string) => valueFrom(run, words);
  const show = async (text: string) => (await valueFrom(run, 'show', { input: `${text}\n` }))[0];
  /** Expects these properties of the answer to this text, and each of these reasons in it. @returns the answer */
  const expectShown = async (text: string, properties: object, ...reasons: readonly string[]) => {
    const shown = await show(text);
    expect(shown, text).to.deep.nested.include(properties);
    for (const reason of reasons) expect(shown.why).to.contain(reason);
    return shown;
  };
  const isRecent = (time: unknown) => expect(Date.parse(String(time))).to.be.closeTo(Date.now(), 600_000);
  const expectRevoked = async (text: string, properties: object, ...reasons: readonly string[]) => {
    const shown = await expectShown(text, { state: 'revoked', ...properties }, ...reasons);
    isRecent(shown.revoked_at);
    return shown;
  };
  const renew = async (token: string) => tokensOf(await refresh(on.issuer, on.clients.confidential, token));
  const active = (kind: string) => {
    const { person, clients } = on.seeded;
    return { kind, state: 'active', 'account.email': person.email, 'client.id': clients.confidential.id };
  };

  it('`show` shows account, client and expiry of a valid token or code, which stays valid', async () => {
    const { confidential, machine } = on.clients;
    const code = await on.partner.code(confidential);
    const { accessToken, refreshToken } = await on.partner.tokens(confidential);
    const { accessToken: machineToken } = tokensOf(await clientCredentials(on.issuer, machine));
    const access = await expectShown(accessToken, active('access_token'));
    expect(Date.parse(access.expires_at) - Date.parse(access.issued_at)).to.equal(3_600_000);
    await expectShown(code, active('code'));
    await expectShown(refreshToken, { ...active('refresh_token'), rotated_at: null });
    await expectShown(machineToken, { kind: 'machine_token', state: 'active', account: null });

    expect((await exchangeCode(on.issuer, confidential, code)).status).to.equal(200);
    await expectShown(code, { state: 'used' });
    for (const token of [accessToken, machineToken]) {
      expect(await on.partner.isActive(token)).to.equal(true);
    }
  });

  it('`show` distinguishes current, replaced and reused refresh tokens, without using them', async () => {
    const { refreshToken: oldest } = await on.partner.tokens(on.clients.confidential);
    const { refreshToken: previous } = await renew(oldest);
    const { refreshToken: current, accessToken } = await renew(previous);
    const reused = await expectShown(oldest, { state: 'reused' }, '2 newer refresh tokens');
    const { rotated_at } = reused;
    expect(reused.why).to.contain(rotated_at);
    await expectShown(previous, { state: 'replaced', rotated_at }, 'no use of the successor was seen');
    expect(await on.partner.isActive(accessToken)).to.equal(true);
    await eventually(async () => {
      const { state, retry_until: until, rotated_at: at } = await show(previous);
      expect(state).to.equal('replaced');
      expect(Date.parse(until) - Date.parse(at)).to.equal(60_000);
    });
    await expectShown(current, { state: 'active' });
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
    await value(`revoke --token ${byOperator.accessToken}`);

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
        await expectRevoked(token, { 'account.email': on.seeded.person.email }, cause);
      }
    }
    await expectShown(code, { state: 'revoked' });
  });

  it('`show` shows whether the client or the user of a token is suspended or deleted', async () => {
    const { clients, accounts } = on.service;
    const { machine } = on.clients;
    const client = await addTestClient(on.service, 'Suspended Planner');
    const { accessToken } = await on.partner.tokens(client);
    const { accessToken: robot } = tokensOf(await clientCredentials(on.issuer, machine));
    await clients.suspend(client.id);
    await expectShown(accessToken, { state: 'client_suspended' });
    await expectShown(client.id, { state: 'client_suspended' });
    await expectShown(client.secret, { kind: 'client_secret', state: 'client_suspended' });
    await clients.resume(client.id);
    await accounts.suspend(on.seeded.person.accountId);
    await expectShown(accessToken, { state: 'account_suspended' });
    await accounts.resume(on.seeded.person.accountId);
    await value(`revoke --client ${machine.id} --yes`);
    await expectRevoked(robot, {});
    await value(`clients delete ${client.id} --yes`);
    await expectShown(accessToken, { state: 'revoked' }, 'client was deleted');
    expect((await show(client.id)).why).to.match(/^Client deleted: .*, by the operator\.$/);
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
      secret: (await value(`clients renew ${of.id} --yes`)).client_secret,
    });
    const [after, newRobot] = [await renewed(client), await renewed(robot)];
    const ofClient = { kind: 'client_secret', 'client.id': client.id };
    await expectRevoked(client.secret, ofClient, 'renewed because of stolen secrets or tokens', 'by the operator');
    const why = 'This value was issued before the client was renewed after a theft.';
    for (const issued of [code, before.accessToken, ofRobot]) {
      expect((await expectRevoked(issued, { why })).remedy).to.contain('new secret');
    }
    const once = 'It works one more time, but only with a client secret that was created after the renewal';
    await expectShown(before.refreshToken, { state: 'replaced' }, once);
    const lifted = tokensOf(await refresh(on.issuer, after, before.refreshToken));
    for (const issued of [lifted.accessToken, lifted.refreshToken, await machineToken(newRobot)]) {
      await expectShown(issued, { state: 'active' });
    }
  });

  it('after a renewal, `show` says that earlier refresh tokens can still be retried, until the second refresh', async () => {
    const client = await addTestClient(on.service, 'Robbed Courier');
    const first = await on.partner.tokens(client);
    const second = tokensOf(await refresh(on.issuer, client, first.refreshToken));
    const after = { ...client, secret: (await on.service.clients.renew(client.id)).secret };
    const lifted = tokensOf(await refresh(on.issuer, after, second.refreshToken));
    for (const { refreshToken } of [first, second]) {
      await expectShown(refreshToken, { state: 'replaced' }, 'A retry still returns the same successor');
    }
    expect(tokensOf(await refresh(on.issuer, after, first.refreshToken)).refreshToken).to.equal(lifted.refreshToken);
    await refresh(on.issuer, after, lifted.refreshToken);
    await expectShown(second.refreshToken, { state: 'reused' });
  });

  it('`show` shows when the operator ended all access of a client, even before its connections are marked as ended', async () => {
    const client = await addTestClient(on.service, 'Ended Planner');
    const { accessToken } = await on.partner.tokens(client);
    await on.service.clients.revoke(client.id, (tx) =>
      on.service.activity.record(
        { action: 'client_tokens_revoked', actor: 'operator', details: { client_id: client.id } },
        tx,
      ),
    );
    await expectRevoked(accessToken, {}, 'ended everything');
  });

  it('`show` shows the owner of a client secret or API key, and when it was removed', async () => {
    const { id: clientId, secret } = await addTestClient(on.service, 'Rotated Planner');
    const ofClient = { 'client.id': clientId, last_four: secret.slice(-4) };
    await expectShown(secret, { state: 'active', ...ofClient });
    await value(`clients rotate-secret ${clientId}`);
    await value(`clients remove-secret ${clientId} --secret=${ofClient.last_four} --yes`);
    await expectShown(secret, { state: 'revoked', 'client.id': clientId });

    const { accountId } = on.seeded.person;
    const key = await apiKeyOf(on.service, on.seeded.person);
    await expectShown(key.value, { kind: 'api_key', state: 'active' });
    await on.service.apiKeys.revoke(accountId, key.id, { address: '192.0.2.1', browser: '' });
    const { why } = await expectShown(key.value, { state: 'revoked' });
    expect(why).to.match(/^No account has this key\. About one with the same last characters, .*by a person/);
    const other = withChecksum(`gate_key_${'y'.repeat(43)}`);
    await expectShown(other, { state: 'unknown', last_four: other.slice(-4) });
  });

  it('`show` says that a value was never issued or has a wrong format, and never prints the value', async () => {
    const x = (length: number) => 'x'.repeat(length);
    const { accessToken } = await on.partner.tokens(on.clients.public);
    for (const unknown of [
      withChecksum(`gate_at_${x(89)}`),
      withChecksum(`gate_mt_${x(43)}`),
      withChecksum(`gate_ac_${x(65)}`),
      withChecksum(`gate_rt_${x(65)}0`),
      withChecksum(`gate_cs_${x(43)}`),
      withChecksum(`gate_key_${x(43)}`),
      'gate_ci_0000000000000000000000',
      'wh_0000000000000000',
      'ses_0000000000000000',
    ]) {
      await expectShown(unknown, { state: 'unknown' });
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
    await expectShown(accessToken, { state: 'active' });
    await on.service.database.query(
      `UPDATE connections SET limit_until = now() - interval '1 second' WHERE account_id = $1 AND client_id = $2`,
      [accountId, client.id],
    );
    await expectShown(accessToken, { state: 'revoked', why: 'The time limit of the connection has passed.' });
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

  it('`show` shows the state of an account, found by id or email address, and when it was suspended or deleted', async () => {
    const { accountId, email } = await addPerson(on.service, 'Dora', 'dora@example.test');
    for (const id of [accountId, email, 'DORA@Example.Test']) {
      const dora = { account: { id: accountId, email }, 'content.name': 'Dora', 'content.connections': 0 };
      expect((await expectShown(id, { state: 'active', ...dora }, 'password')).log).to.be.an('array');
    }
    await value(`accounts suspend ${email}`);
    isRecent((await expectShown(email, { state: 'account_suspended' })).suspended_at);
    await value(`accounts resume ${email}`);
    const invited = await on.service.accounts.add({ email: 'new@example.test', name: 'New' });
    await expectShown(invited.id, { state: 'no_password_yet' });
    await value(`accounts delete ${accountId} --yes`);
    await expectRevoked(accountId, { kind: 'account' }, 'deleted, by the operator');
    await expectShown(email, { kind: 'email', state: 'unknown' });
  });

  it('`show` shows a client, an organization with its members, a warehouse, and when an organization was deleted', async () => {
    const { warehouse } = on.seeded;
    const { id: organizationId, name } = on.seeded.organization;
    const home = await expectShown(organizationId, { kind: 'organization', state: 'active', name });
    expect(home.content.members).to.have.length(2);
    expect(home.content.warehouses[0]).to.include({ id: warehouse.id });
    const { id: clientId } = on.clients.confidential;
    await expectShown(clientId, { 'content.id': clientId, 'content.kind': 'confidential' });
    const ofPlace = { name: warehouse.name, 'content.organization': { id: organizationId, name } };
    await expectShown(warehouse.id, { kind: 'warehouse', state: 'active', ...ofPlace });
    const { id } = await value('organizations add --name Short');
    await value(`organizations delete ${id} --yes`);
    await expectRevoked(id, { name: 'Short' });
  });

  it('`show` shows what ended a connection or authorization, and when', async () => {
    const { confidential, resourceServer } = on.clients;
    const authorizationOf = async (token: string): Promise<string> => {
      const { body } = await introspect(on.issuer, resourceServer, token);
      return String(body.authorization);
    };
    const first = await on.partner.tokens(confidential);
    const second = await on.partner.tokens(confidential);
    const [ended, left] = [await authorizationOf(first.accessToken), await authorizationOf(second.accessToken)];
    await revokeCurrent(on.issuer, first.accessToken);
    await eventually(() => expectShown(ended, { state: 'revoked' }, 'by the app itself'));
    await expectShown(left, active('authorization'));

    const id = `${on.seeded.person.accountId}/${confidential.id}`;
    await expectShown(id, { kind: 'connection', state: 'active' });
    await value(`connections end ${id} --yes`);
    await expectRevoked(id, {}, 'by the operator');
    await expectShown(left, {}, 'by the operator');
    await expectShown(`${on.seeded.other.accountId}/${confidential.id}`, { state: 'unknown' });
  });

  it('`show` finds a session by its id or its URL, shows who ended it, and does not recognize its cookie', async () => {
    const { email } = on.seeded.person;
    const browser = await signedIn(on, on.seeded.person);
    const [{ id }] = await value(`sessions list --account ${email}`);
    // Read the URL that signs this browser out: the security page in another browser contains it.
    const owner = await signedIn(on.service, on.seeded.person);
    const { html } = await owner.get('/profile/security');
    const [, uid = ''] = /sessions\/([\w-]{43})\/sign-out/.exec(html) ?? [];
    const [, cookie = ''] = /gate_session=([\w-]+)/.exec(browser.cookieHeader('/')) ?? [];
    for (const one of [id, uid, `${on.issuer}/profile/security/sessions/${uid}/sign-out`]) {
      await expectShown(one, { state: 'active', 'account.email': email });
    }
    const { output } = await run('show', cookie);
    expect(output).to.contain('unknown').and.contain('`sessions list`').and.not.contain(cookie);
    await owner.send(`/profile/security/sessions/${uid}/sign-out`);
    await expectRevoked(id, {}, 'by a person');
    await signedIn(on, on.seeded.person);
    const [other] = await value(`sessions list --account ${email}`);
    await value(`sessions end --account ${email} --yes`);
    await expectShown(other.id, {}, 'with all others');
  });

  it('the index `activity_ends` contains exactly the actions that `show` looks for', async () => {
    const [index] = await on.service.database.query<{ text: string }>(
      "SELECT pg_get_indexdef('activity_ends'::regclass) AS text",
    );
    const actions = index?.text.match(/'[a-z_]+'/g)?.map((action) => action.slice(1, -1));
    expect(actions).to.have.members(ENDS);
  });

  it('`show` recognizes a session that its user signed out', async () => {
    const browser = await signedIn(on.service, on.seeded.other);
    const [{ id }] = await value(`sessions list --account ${on.seeded.other.email}`);
    await browser.submit(await browser.get('/logout'), {});
    await expectShown(id, { kind: 'session', state: 'revoked' });
  });

  it('`show` shows the state of an API key, passkey or one-time link, and never its secret', async () => {
    const { person } = on.seeded;
    const key = await apiKeyOf(on.service, person);
    await expectShown(key.id, { kind: 'api_key_id', state: 'active' });
    await value(`api-keys revoke ${key.id} --yes`);
    await expectRevoked(key.id, { last_four: key.lastFour });

    const id = await addUnusablePasskey(on.service, person.accountId, 'one');
    await expectShown(id, { kind: 'passkey', state: 'active' });
    await value(`passkeys remove ${person.email} --passkey ${id} --yes`);
    await expectShown(id, { state: 'revoked' });

    const { invite_link: link } = await value(`accounts invite ${person.email}`);
    const token = new URL(link).searchParams.get('token') ?? '';
    for (const one of [link, token]) {
      const answer = await run('show --json', one);
      const [shown] = JSON.parse(answer.output);
      expect(shown).to.include({ kind: 'link', state: 'active' });
      expect(shown.account.email).to.equal(person.email);
      expect(answer.output).not.to.contain(token);
    }
    await value(`revoke --account ${person.email} --yes`);
    await expectShown(link, { kind: 'opaque', state: 'unknown' });
  });

  it('`show` reports a link as revoked after the end of the session that created the link', async () => {
    const person = await addPerson(on.service, 'Vera', 'vera@example.test');
    await signedIn(on, person);
    const { invite_link: link } = await value(`accounts invite ${person.email}`);
    await on.service.database.query(
      `UPDATE password_links SET purpose = 'confirmed', session_uid = uid, session_generation = generation
        FROM browser_sessions s WHERE s.account_id = password_links.account_id AND s.account_id = $1`,
      [person.accountId],
    );
    await expectShown(link, { kind: 'link', state: 'active' });
    await value(`sessions end --account ${person.email} --yes`);
    await expectShown(link, { kind: 'link', state: 'revoked' });
  });

  it('`show` shows the client and the exact cause of a refused request', async () => {
    const { confidential } = on.clients;
    const code = await on.partner.code(confidential);
    const answer = await exchangeCode(on.issuer, confidential, code, {
      redirect_uri: 'https://partner.example/other',
    });
    expect(answer.status).to.equal(400);
    await on.service.clientRequests.groups(confidential.id);
    const {
      problems: [problem],
    } = await value(`clients show ${confidential.id}`);
    const refused = { kind: 'request', state: 'refused', 'client.id': confidential.id };
    await expectShown(problem.request_id, refused, 'invalid_grant', 'redirect_uri');
    const other = await expectShown('req_0123456789abcdef', { state: 'unknown' });
    expect(other.remedy).to.contain('req_0123456789abcdef');
  });

  it('`clients show` and `show` list the recent problems of a client, grouped, with the exact cause and no secrets', async () => {
    const client = await addTestClient(on.service, 'Recent problems');
    const code = await on.partner.code(client);
    const wrong = { ...client, secret: withChecksum(`gate_cs_${'x'.repeat(43)}`) };
    for (const _ of [1, 2]) await exchangeCode(on.issuer, wrong, code);
    const foreign = { redirect_uri: 'https://evil.example/callback?token=s3cret' };
    await createPerson(on.issuer).get(authorizationUrl(on.issuer, client, foreign));
    await on.service.clientRequests.groups(client.id);
    const answer = await run(`clients show ${client.id} --json`);
    for (const secret of [code, wrong.secret, 's3cret']) expect(answer.output).not.to.contain(secret);
    const { problems } = JSON.parse(answer.output);
    const [uri, secrets, ...others] = problems;
    expect(others).to.deep.equal([]);
    expect(uri).to.deep.include({ step: 'authorize', error: 'invalid_redirect_uri', count: 1 });
    expect(secrets).to.deep.include({ step: 'token', error: 'invalid_client', count: 2, auth_method: 'body' });
    expect((await run(`clients show ${client.id}`)).output).to.contain(secrets.request_id);
    expect((await show(client.id)).content.problems).to.deep.equal(problems);
  });

  it('`show` shows the change that a request made, and the account', async () => {
    const { accessToken } = await on.partner.tokens(on.clients.confidential);
    const revoked = await revokeCurrent(on.issuer, accessToken);
    const done = { kind: 'request', state: 'done', 'account.id': on.seeded.person.accountId };
    await expectShown(revoked.headers.get('x-request-id') ?? '', done, 'Route Planner');
  });

  it('`show` shows whether an organization of the user blocks the client of a token', async () => {
    const { otherConfidential } = on.clients;
    const { organization } = on.seeded;
    const { accountId } = on.seeded.other;
    const { accessToken } = await on.partner.tokens(otherConfidential);
    await on.service.memberships.setRole({ accountId }, organization.id, 'owner');
    on.service.access.forget(accountId);
    const owner = await signedIn(on.service, on.seeded.other);
    await owner.fillIn(`/profile/organizations/${organization.id}/clients/${otherConfidential.id}/end`);
    await expectShown(accessToken, {}, `nothing in ${organization.name}`);
    const { clients } = (await show(organization.id)).content;
    expect(clients.find(({ id }: { id: string }) => id === otherConfidential.id)).to.include({ state: 'blocked' });
  });
});

onPostgresAndRedis('operator show, after expiry', (start) => {
  // The clock of the service is 65 minutes behind that of the command.
  const clock = new Date(Date.now() - 65 * 60_000);
  const on = startSeeded({ on: start, clock, settings: { tokens: { refreshTokenSeconds: 3_600 } } });

  it('`show` reports expired tokens, including a replaced refresh token that could still be retried', async () => {
    const { confidential } = on.clients;
    const code = await on.partner.code(confidential);
    const { accessToken, refreshToken } = await on.partner.tokens(confidential);
    const next = await granted(refresh(on.issuer, confidential, refreshToken));
    on.clock.restore();
    const show = async (value: string) => (await valueFrom(operatorFor(on.service), `show ${value}`))[0];
    for (const value of [accessToken, code, next.refreshToken, refreshToken]) {
      const shown = await show(value);
      expect(shown, value.slice(0, 7)).to.include({ state: 'expired' });
      expect(shown.account.email).to.equal(on.seeded.person.email);
    }
    expect((await show(accessToken)).why).to.contain('and the last refresh token of its authorization have expired');
  });
});
