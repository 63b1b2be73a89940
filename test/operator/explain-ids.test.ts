/** `explain` of values other than tokens: ids in logs and on pages, links, cookies, URLs of pages. */
import { expect } from 'chai';
import { createSessionList } from '../../src/accounts/session-list.ts';
import { type SignedInPerson, signedIn } from '../pages/signed-in-person.ts';
import { eventually } from '../support/eventually.ts';
import { authorizationUrl, exchangeCode, introspect, revokeCurrent } from '../support/oauth.ts';
import { createPerson } from '../support/person.ts';
import { addPerson } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';
import { onPostgresAndRedis } from '../support/service.ts';
import { operatorFor, type RunOperator, valueFrom } from './run-operator.ts';

const FROM = { address: '192.0.2.1', browser: '' };

onPostgresAndRedis('operator explain, for ids and links', (start) => {
  const on = startSeeded({ on: start });
  const run: RunOperator = (...words) => operatorFor(on.service)(...words);
  const value = (words: string) => valueFrom(run, words);
  const explain = (id: string, exitCode = 0) => valueFrom(run, 'explain', { input: `${id}\n`, exitCode });
  const isRecent = (time: unknown) => expect(Date.parse(String(time))).to.be.closeTo(Date.now(), 60_000);

  it('`explain` shows for an account (id or email address) its state, and when it was suspended or deleted', async () => {
    const { accountId, email } = await addPerson(on.service, 'Dora', 'dora@example.test');
    for (const id of [accountId, email, 'DORA@Example.Test']) {
      const explained = await explain(id);
      expect(explained).to.include({ state: 'active' });
      expect(explained.account).to.deep.equal({ id: accountId, email });
      expect(explained.why).to.contain('password');
    }
    await value(`accounts suspend ${email}`);
    const suspended = await explain(email);
    expect(suspended).to.include({ state: 'account_suspended' });
    isRecent(suspended.suspended_at);
    await value(`accounts resume ${email}`);
    const invited = await on.service.accounts.add({ email: 'new@example.test', name: 'New' });
    expect(await explain(invited.id)).to.include({ state: 'no_password_yet' });
    await value(`accounts delete ${accountId} --yes`);
    const deleted = await explain(accountId);
    expect(deleted).to.include({ kind: 'account', state: 'revoked' });
    expect(deleted.why).to.contain('deleted by the operator');
    isRecent(deleted.revoked_at);
    expect(await explain(email)).to.include({ kind: 'email', state: 'unknown' });
  });

  it('`explain` shows for an organization or warehouse who can reach it, and when it was removed', async () => {
    const { warehouse } = on.seeded;
    const { id: organizationId, name } = on.seeded.organization;
    const organization = { id: organizationId, name };
    const home = await explain(organization.id);
    expect(home).to.include({ kind: 'organization', state: 'active', name: organization.name });
    expect(home.why).to.contain('1 people and 1 machine clients');
    const place = await explain(warehouse.id);
    expect(place).to.deep.include({ kind: 'warehouse', state: 'active', organization });
    const { id } = await value('organizations add --name Short');
    await value(`organizations delete ${id} --yes`);
    const removed = await explain(id);
    expect(removed).to.include({ state: 'revoked', name: 'Short' });
    isRecent(removed.revoked_at);
    expect(await explain('wh_0000000000000000')).to.include({ state: 'unknown' });
  });

  it('`explain` shows for a connection or authorization what ended it, and when', async () => {
    const { confidential, resourceServer } = on.clients;
    const { person } = on.seeded;
    const authorizationOf = async (token: string): Promise<string> => {
      const { body } = await introspect(on.issuer, resourceServer, token);
      return String(body.authorization);
    };
    const first = await on.partner.tokens(confidential);
    const second = await on.partner.tokens(confidential);
    const [ended, left] = [await authorizationOf(first.accessToken), await authorizationOf(second.accessToken)];
    await revokeCurrent(on.issuer, first.accessToken);
    await eventually(async () => expect(await explain(ended)).to.include({ state: 'revoked' }));
    expect((await explain(ended)).why).to.contain('by the app itself');
    const live = await explain(left);
    expect(live).to.include({ kind: 'authorization', state: 'active' });
    expect(live.account.email).to.equal(person.email);
    expect(live.client.id).to.equal(confidential.id);

    const id = `${person.accountId}/${confidential.id}`;
    expect(await explain(id)).to.include({ kind: 'connection', state: 'active' });
    await value(`connections end ${id} --yes`);
    const over = await explain(id);
    expect(over).to.include({ state: 'revoked' });
    expect(over.why).to.contain('by the operator');
    isRecent(over.revoked_at);
    expect((await explain(left)).why).to.contain('by the operator');
    const never = `${on.seeded.other.accountId}/${confidential.id}`;
    expect(await explain(never)).to.include({ state: 'unknown' });
  });

  it('`explain` shows for a session (id, uid or cookie) who ended it', async () => {
    const { email } = on.seeded.person;
    const browser = createPerson(on.issuer);
    await browser.signIn(on.seeded.person);
    const [{ id }] = await value(`sessions list --account ${email}`);
    // Read the URL that signs this browser out: the security page in another browser contains it.
    const { html } = await (await signedIn(on.service, on.seeded.person)).get('/profile/security');
    const [, uid = ''] = /sessions\/([\w-]{43})\/sign-out/.exec(html) ?? [];
    const [, cookie = ''] = /gate_session=([\w-]+)/.exec(browser.cookieHeader('/')) ?? [];
    for (const one of [id, uid, cookie, `${on.issuer}/profile/security/sessions/${uid}/sign-out`]) {
      const explained = await explain(one);
      expect(explained, one).to.include({ state: 'active' });
      expect(explained.account.email).to.equal(email);
    }
    const { output } = await run('explain', cookie);
    expect(output).not.to.contain(cookie);
    await value(`sessions end ${id} --yes`);
    const ended = await explain(cookie);
    expect(ended).to.include({ state: 'revoked' });
    expect(ended.why).to.contain('by the operator');
    isRecent(ended.revoked_at);
    const next = createPerson(on.issuer);
    await next.signIn(on.seeded.person);
    const [other] = await value(`sessions list --account ${email}`);
    await value(`sessions end --account ${email} --yes`);
    expect((await explain(other.id)).why).to.contain('with all others');
    expect(await explain('ses_0000000000000000')).to.include({ state: 'unknown' });
  });

  it('a session is found by its public id with an index', async () => {
    const { database } = on.service;
    const asked: string[] = [];
    const query = async (text: string) => void asked.push(text);
    const list = createSessionList({
      database: { ...database, query } as never,
      accounts: on.service.accounts,
    });
    await list.find(`ses_${'x'.repeat(16)}`).catch(() => undefined);
    const plan = await database.transaction(async (tx) => {
      await tx.query('SET LOCAL enable_seqscan = off');
      return tx.query(`EXPLAIN ${asked[0]?.replace('$1', "'ses_'")}`);
    });
    expect(JSON.stringify(plan)).to.include('browser_sessions_public_id');
  });

  it('`explain` recognizes a session that its user signed out, and a pending sign-in', async () => {
    const browser: SignedInPerson = await signedIn(on.service, on.seeded.other);
    const [{ id }] = await value(`sessions list --account ${on.seeded.other.email}`);
    await browser.submit(await browser.get('/logout'), {});
    expect(await explain(id)).to.include({ kind: 'session', state: 'expired' });
    const page = await createPerson(on.issuer).get(authorizationUrl(on.issuer, on.clients.confidential));
    const explained = await explain(String(page.location));
    expect(explained).to.include({ kind: 'sign_in_page', state: 'active' });
    expect(explained.client.id).to.equal(on.clients.confidential.id);
  });

  it('`explain` shows the state of an API key, passkey or one-time link, and never its secret', async () => {
    const { person } = on.seeded;
    const made = { accountId: person.accountId, name: 'Export', expiresInDays: 30 };
    const { key } = await on.service.apiKeys.add(made, FROM);
    expect(await explain(key.id)).to.include({ kind: 'api_key_id', state: 'active' });
    await value(`api-keys revoke ${key.id} --yes`);
    const revoked = await explain(key.id);
    expect(revoked).to.include({ state: 'revoked', last_four: key.lastFour });
    isRecent(revoked.revoked_at);

    const passkey = await on.service.passkeys.add({
      accountId: person.accountId,
      name: 'Phone',
      credentialId: 'one',
      publicKey: '',
      transports: [],
      maySync: true,
      isSynced: true,
      counter: 0,
      aaguid: '',
      challenge: { text: 'one', seconds: 1 },
      origin: FROM,
    });
    const id = typeof passkey === 'object' ? passkey.id : '';
    expect(await explain(id)).to.include({ kind: 'passkey', state: 'active' });
    await value(`passkeys remove ${person.email} --passkey ${id} --yes`);
    expect(await explain(id)).to.include({ state: 'revoked' });

    const { invite_link: link } = await value(`accounts invite ${person.email}`);
    const token = new URL(link).searchParams.get('token') ?? '';
    for (const one of [link, token]) {
      const answer = await run('explain --json', one);
      const explained = JSON.parse(answer.output);
      expect(explained).to.include({ kind: 'link', state: 'active' });
      expect(explained.account.email).to.equal(person.email);
      expect(answer.output).not.to.contain(token);
    }
    await value(`revoke --account ${person.email} --yes`);
    expect(await explain(link)).to.include({ kind: 'opaque', state: 'unknown' });
  });

  it('`explain` shows for a refused request its client and the exact cause', async () => {
    const { confidential } = on.clients;
    const code = await on.partner.code(confidential);
    const answer = await exchangeCode(on.issuer, confidential, code, {
      redirect_uri: 'https://partner.example/other',
    });
    expect(answer.status).to.equal(400);
    await on.service.clientProblems.groups(confidential.id);
    const [problem] = await value(`problems list --client ${confidential.id}`);
    const explained = await explain(problem.request_id);
    expect(explained).to.include({ kind: 'request', state: 'refused' });
    expect(explained.why).to.contain('invalid_grant').and.contain('redirect_uri');
    expect(explained.client.id).to.equal(confidential.id);
    const other = await explain('req_0123456789abcdef');
    expect(other).to.include({ state: 'unknown' });
    expect(other.remedy).to.contain('req_0123456789abcdef');
  });

  it('`explain` shows for a request that made a change the change and the account', async () => {
    const { accessToken } = await on.partner.tokens(on.clients.confidential);
    const revoked = await revokeCurrent(on.issuer, accessToken);
    const explained = await explain(revoked.headers.get('x-request-id') ?? '');
    expect(explained).to.include({ kind: 'request', state: 'done' });
    expect(explained.why).to.contain('Route Planner');
    expect(explained.account.id).to.equal(on.seeded.person.accountId);
  });

  it('`explain` shows for a token if an organization of its user blocks its client', async () => {
    const { otherConfidential } = on.clients;
    const { accountId } = on.seeded.other;
    const { accessToken } = await on.partner.tokens(otherConfidential);
    await on.service.memberships.setRole({ accountId }, on.seeded.organization.id, 'owner');
    on.service.access.forget(accountId);
    const owner = await signedIn(on.service, on.seeded.other);
    const { organization } = on.seeded;
    await owner.fillIn(`/profile/organizations/${organization.id}/clients/${otherConfidential.id}/end`);
    expect((await explain(accessToken)).why).to.contain(`nothing in ${organization.name}`);
    const blocking = await explain(organization.id);
    expect(blocking.why).to.contain('blocks 1 clients');
  });

  it('`explain` reports an incomplete id, or a text that is no id, as malformed', async () => {
    for (const [text, kind] of [
      ['acc_short', 'account'],
      ['ses_!', 'session'],
      ['req_0123456789ABCDEF', 'request'],
      ['swordfish', null],
      [`${on.issuer}/profile`, null],
    ] as const) {
      expect(await explain(text, 1), text).to.deep.include({ kind, state: 'malformed' });
    }
  });
});
