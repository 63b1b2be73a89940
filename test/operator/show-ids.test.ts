/** `show` of values other than tokens: ids in logs and on pages, links, URLs of pages. */
import { expect } from 'chai';
import { ENDS } from '../../src/accounts/activity/audit.ts';
import { withChecksum } from '../../src/base/random-id.ts';
import { type SignedInPerson, signedIn } from '../pages/signed-in-person.ts';
import { eventually } from '../support/eventually.ts';
import { authorizationUrl, exchangeCode, introspect, revokeCurrent } from '../support/oauth.ts';
import { createPerson } from '../support/person.ts';
import { addPerson, addUnusablePasskey, apiKeyOf } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';
import { onPostgresAndRedis } from '../support/service.ts';
import { operatorFor, type RunOperator, valueFrom } from './run-operator.ts';

onPostgresAndRedis('operator show, for ids and links', (start) => {
  const on = startSeeded({ on: start });
  const run: RunOperator = (...words) => operatorFor(on.service)(...words);
  const value = (words: string) => valueFrom(run, words);
  const show = async (id: string, exitCode = 0) => (await valueFrom(run, 'show', { input: `${id}\n`, exitCode }))[0];
  const isRecent = (time: unknown) => expect(Date.parse(String(time))).to.be.closeTo(Date.now(), 600_000);

  it('`show` shows the state of an account, found by id or email address, and when it was suspended or deleted', async () => {
    const { accountId, email } = await addPerson(on.service, 'Dora', 'dora@example.test');
    for (const id of [accountId, email, 'DORA@Example.Test']) {
      const shown = await show(id);
      expect(shown).to.include({ state: 'active' });
      expect(shown.account).to.deep.equal({ id: accountId, email });
      expect(shown.why).to.contain('password');
      expect(shown.content).to.include({ name: 'Dora', connections: 0 });
      expect(shown.log).to.be.an('array');
    }
    await value(`accounts suspend ${email}`);
    const suspended = await show(email);
    expect(suspended).to.include({ state: 'account_suspended' });
    isRecent(suspended.suspended_at);
    await value(`accounts resume ${email}`);
    const invited = await on.service.accounts.add({ email: 'new@example.test', name: 'New' });
    expect(await show(invited.id)).to.include({ state: 'no_password_yet' });
    await value(`accounts delete ${accountId} --yes`);
    const deleted = await show(accountId);
    expect(deleted).to.include({ kind: 'account', state: 'revoked' });
    expect(deleted.why).to.contain('deleted, by the operator');
    isRecent(deleted.revoked_at);
    expect(await show(email)).to.include({ kind: 'email', state: 'unknown' });
  });

  it('`show` shows what belongs to a client, who can access an organization or warehouse, and when they were removed', async () => {
    const { warehouse } = on.seeded;
    const { id: organizationId, name } = on.seeded.organization;
    const organization = { id: organizationId, name };
    const home = await show(organization.id);
    expect(home).to.include({ kind: 'organization', state: 'active', name: organization.name });
    expect(home.content.members).to.have.length(2);
    expect(home.content.warehouses[0]).to.include({ id: warehouse.id });
    const client = await show(on.clients.confidential.id);
    expect(client.content).to.include({ id: on.clients.confidential.id, kind: 'confidential' });
    const place = await show(warehouse.id);
    expect(place.content.organization).to.deep.equal(organization);
    expect(place).to.deep.include({ kind: 'warehouse', state: 'active', name: warehouse.name });
    const { id } = await value('organizations add --name Short');
    await value(`organizations delete ${id} --yes`);
    const removed = await show(id);
    expect(removed).to.include({ state: 'revoked', name: 'Short' });
    isRecent(removed.revoked_at);
    expect(await show('wh_0000000000000000')).to.include({ state: 'unknown' });
  });

  it('`show` shows what ended a connection or authorization, and when', async () => {
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
    await eventually(async () => expect(await show(ended)).to.include({ state: 'revoked' }));
    expect((await show(ended)).why).to.contain('by the app itself');
    const live = await show(left);
    expect(live).to.include({ kind: 'authorization', state: 'active' });
    expect(live.account.email).to.equal(person.email);
    expect(live.client.id).to.equal(confidential.id);

    const id = `${person.accountId}/${confidential.id}`;
    expect(await show(id)).to.include({ kind: 'connection', state: 'active' });
    await value(`connections end ${id} --yes`);
    const over = await show(id);
    expect(over).to.include({ state: 'revoked' });
    expect(over.why).to.contain('by the operator');
    isRecent(over.revoked_at);
    expect((await show(left)).why).to.contain('by the operator');
    const never = `${on.seeded.other.accountId}/${confidential.id}`;
    expect(await show(never)).to.include({ state: 'unknown' });
  });

  it('`show` finds a session by its id or its URL, shows who ended it, and does not recognize its cookie', async () => {
    const { email } = on.seeded.person;
    const browser = createPerson(on.issuer);
    await browser.signIn(on.seeded.person);
    const [{ id }] = await value(`sessions list --account ${email}`);
    // Read the URL that signs this browser out: the security page in another browser contains it.
    const owner = await signedIn(on.service, on.seeded.person);
    const { html } = await owner.get('/profile/security');
    const [, uid = ''] = /sessions\/([\w-]{43})\/sign-out/.exec(html) ?? [];
    const [, cookie = ''] = /gate_session=([\w-]+)/.exec(browser.cookieHeader('/')) ?? [];
    for (const one of [id, uid, `${on.issuer}/profile/security/sessions/${uid}/sign-out`]) {
      const shown = await show(one);
      expect(shown, one).to.include({ state: 'active' });
      expect(shown.account.email).to.equal(email);
    }
    const { output } = await run('show', cookie);
    expect(output).to.contain('unknown').and.contain('`sessions list`').and.not.contain(cookie);
    await owner.send(`/profile/security/sessions/${uid}/sign-out`);
    const ended = await show(id);
    expect(ended).to.include({ state: 'revoked' });
    expect(ended.why).to.contain('by a person');
    isRecent(ended.revoked_at);
    const next = createPerson(on.issuer);
    await next.signIn(on.seeded.person);
    const [other] = await value(`sessions list --account ${email}`);
    await value(`sessions end --account ${email} --yes`);
    expect((await show(other.id)).why).to.contain('with all others');
    expect(await show('ses_0000000000000000')).to.include({ state: 'unknown' });
  });

  it('the database index of ends contains every action that `show` looks for', async () => {
    const [index] = await on.service.database.query<{ text: string }>(
      "SELECT pg_get_indexdef('activity_ends'::regclass) AS text",
    );
    const actions = index?.text.match(/'[a-z_]+'/g)?.map((action) => action.slice(1, -1));
    expect(actions).to.have.members(ENDS);
  });

  it('`show` recognizes a session that its user signed out', async () => {
    const browser: SignedInPerson = await signedIn(on.service, on.seeded.other);
    const [{ id }] = await value(`sessions list --account ${on.seeded.other.email}`);
    await browser.submit(await browser.get('/logout'), {});
    expect(await show(id)).to.include({ kind: 'session', state: 'revoked' });
  });

  it('`show` shows the state of an API key, passkey or one-time link, and never its secret', async () => {
    const { person } = on.seeded;
    const key = await apiKeyOf(on.service, person);
    expect(await show(key.id)).to.include({ kind: 'api_key_id', state: 'active' });
    await value(`api-keys revoke ${key.id} --yes`);
    const revoked = await show(key.id);
    expect(revoked).to.include({ state: 'revoked', last_four: key.lastFour });
    isRecent(revoked.revoked_at);

    const id = await addUnusablePasskey(on.service, person.accountId, 'one');
    expect(await show(id)).to.include({ kind: 'passkey', state: 'active' });
    await value(`passkeys remove ${person.email} --passkey ${id} --yes`);
    expect(await show(id)).to.include({ state: 'revoked' });

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
    expect(await show(link)).to.include({ kind: 'opaque', state: 'unknown' });
  });

  it('`show` reports a link that was created in a session as ended with the session', async () => {
    const person = await addPerson(on.service, 'Vera', 'vera@example.test');
    await signedIn(on, person);
    const { invite_link: link } = await value(`accounts invite ${person.email}`);
    await on.service.database.query(
      `UPDATE password_links SET purpose = 'confirmed', session_uid = uid, session_generation = generation
        FROM browser_sessions s WHERE s.account_id = password_links.account_id AND s.account_id = $1`,
      [person.accountId],
    );
    expect(await show(link)).to.include({ kind: 'link', state: 'active' });
    await value(`sessions end --account ${person.email} --yes`);
    expect(await show(link)).to.include({ kind: 'link', state: 'revoked' });
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
    const shown = await show(problem.request_id);
    expect(shown).to.include({ kind: 'request', state: 'refused' });
    expect(shown.why).to.contain('invalid_grant').and.contain('redirect_uri');
    expect(shown.client.id).to.equal(confidential.id);
    const other = await show('req_0123456789abcdef');
    expect(other).to.include({ state: 'unknown' });
    expect(other.remedy).to.contain('req_0123456789abcdef');
  });

  it('`clients show` and `show` list the recent problems of a client, grouped, with the exact cause and no secrets', async () => {
    const { otherConfidential: client } = on.clients;
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
    const shown = await show(revoked.headers.get('x-request-id') ?? '');
    expect(shown).to.include({ kind: 'request', state: 'done' });
    expect(shown.why).to.contain('Route Planner');
    expect(shown.account.id).to.equal(on.seeded.person.accountId);
  });

  it('`show` shows whether an organization of the user blocks the client of a token', async () => {
    const { otherConfidential } = on.clients;
    const { accountId } = on.seeded.other;
    const { accessToken } = await on.partner.tokens(otherConfidential);
    await on.service.memberships.setRole({ accountId }, on.seeded.organization.id, 'owner');
    on.service.access.forget(accountId);
    const owner = await signedIn(on.service, on.seeded.other);
    const { organization } = on.seeded;
    await owner.fillIn(`/profile/organizations/${organization.id}/clients/${otherConfidential.id}/end`);
    expect((await show(accessToken)).why).to.contain(`nothing in ${organization.name}`);
    const { clients } = (await show(organization.id)).content;
    expect(clients.find(({ id }: { id: string }) => id === otherConfidential.id)).to.include({ state: 'blocked' });
  });
});
