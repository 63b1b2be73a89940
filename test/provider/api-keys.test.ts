import { expect } from 'chai';
import { createTestClock, type TestClock } from '../support/clock.ts';
import { eventually } from '../support/eventually.ts';
import { introspect, postForm, revokeCurrent } from '../support/oauth.ts';
import { describeOn, postgresServer, redisServer } from '../support/requirements.ts';
import { type Seed, seed } from '../support/seed.ts';
import { forEachDeployment, startTestService, type TestService } from '../support/service.ts';

const DAY = 86_400;
const INACTIVE = { active: false };
const origin = { address: '203.0.113.7', browser: 'curl/8.5.0' };

forEachDeployment('API keys at the OAuth endpoints', (start) => {
  let service: TestService;
  let seeded: Seed;
  let time: TestClock;
  let value: string;
  let keyId: string;

  before(async () => {
    time = createTestClock();
    service = await start({ clock: time.clock });
    seeded = await seed(service);
  });
  beforeEach(async () => {
    await service.database.query('DELETE FROM api_keys');
    const made = await add(30);
    [value, keyId] = [made.value, made.key.id];
  });
  after(() => time.restore());

  const add = (expiresInDays: number | undefined) =>
    service.apiKeys.add(
      { accountId: seeded.person.accountId, name: 'Export', expiresInDays },
      origin,
    );
  const ask = async (presented = value, client = seeded.clients.resourceServer) =>
    (await introspect(service.issuer, client, presented)).body;

  it('a resource server is told whose the key is and what they reach now', async () => {
    const iat = Math.floor(time.clock() / 1000);
    const { person, organization, warehouse } = seeded;
    expect(await ask()).to.deep.equal({
      active: true,
      token_type: 'api_key',
      sub: person.accountId,
      username: person.email,
      exp: iat + 30 * DAY,
      iat,
      iss: service.issuer,
      organizations: [
        {
          ...{ id: organization.id, name: organization.name, role: 'member' },
          warehouses: [{ id: warehouse.id, name: warehouse.name, rights: ['read', 'write'] }],
        },
      ],
    });
    const { value: endless } = await add(undefined);
    expect(await ask(endless))
      .to.include({ active: true })
      .and.not.have.property('exp');
  });

  it('nobody but a resource server is told anything', async () => {
    const { confidential, machine } = seeded.clients;
    for (const client of [confidential, machine]) {
      expect(await ask(value, client)).to.deep.equal(INACTIVE);
    }
  });

  it('a value that is not whole, or never was a key, is inactive', async () => {
    const others = [value.slice(0, -1), `${value}x`, `gate_key_${'A'.repeat(43)}`, 'gate_key_'];
    for (const other of others) expect(await ask(other), other).to.deep.equal(INACTIVE);
  });

  it('it is good until the second of its expiry', async () => {
    time.advance(30 * DAY - 1);
    expect(await ask()).to.include({ active: true });
    time.advance(1);
    expect(await ask()).to.deep.equal(INACTIVE);
  });

  it('it is dead from the moment it is revoked, and while its person is suspended', async () => {
    const { accountId } = seeded.person;
    expect(await ask()).to.include({ active: true });
    await service.accounts.suspend(accountId);
    expect(await ask()).to.deep.equal(INACTIVE);
    await service.accounts.resume(accountId);
    expect(await ask()).to.include({ active: true });
    await service.apiKeys.revoke(accountId, keyId, origin);
    expect(await ask()).to.deep.equal(INACTIVE);
  });

  it('what it reaches is what its person reaches at the moment of the call', async () => {
    const subject = { accountId: seeded.person.accountId };
    await service.memberships.setRights(subject, seeded.warehouse.id, ['read']);
    await eventually(async () => {
      expect(JSON.stringify(await ask())).to.include('"rights":["read"]');
    });
    await service.memberships.setRights(subject, seeded.warehouse.id, ['read', 'write']);
  });

  it('it revokes nothing, and is revoked nowhere but on the profile page', async () => {
    const current = await revokeCurrent(service.issuer, value);
    expect(current.status).to.equal(401);
    expect(current.body).to.include({ error: 'invalid_token' });
    expect(current.body.error_description).to.include('profile page');
    expect(current.headers.get('www-authenticate')).to.match(/^Bearer error="invalid_token"/);
    const { confidential } = seeded.clients;
    const standard = await postForm(
      ...([service.issuer, '/oauth/revoke', { token: value }, { client: confidential }] as const),
    );
    expect(standard.status).to.equal(200);
    expect(await ask()).to.include({ active: true });
  });

  it('it is no token of any grant', async () => {
    const { confidential } = seeded.clients;
    const parameters = { grant_type: 'refresh_token', refresh_token: value };
    const answer = await postForm(service.issuer, '/oauth/token', parameters, {
      client: confidential,
    });
    expect(answer.body).to.include({ error: 'invalid_grant' });
    expect(service.logLines.join()).not.to.include(value);
  });
});

describeOn([postgresServer, redisServer], 'API keys on several nodes', () => {
  it('a key revoked at one node is dead at the others', async () => {
    const first = await startTestService({ deployment: 'postgres+redis' });
    const second = await startTestService({ deployment: 'postgres+redis', beside: first });
    try {
      const { person, clients } = await seed(first);
      const draft = { accountId: person.accountId, name: 'Export', expiresInDays: 30 };
      const { value, key } = await first.apiKeys.add(draft, origin);
      const ask = async () =>
        (await introspect(second.issuer, clients.resourceServer, value)).body.active;
      expect(await ask()).to.equal(true);
      await first.apiKeys.revoke(person.accountId, key.id, origin);
      await eventually(async () => expect(await ask()).to.equal(false));
    } finally {
      await second.close();
      await first.close();
    }
  });
});
