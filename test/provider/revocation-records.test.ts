/** Why an authorization ended is remembered, and a revocation never waits for it. */
import { expect } from 'chai';
import { exchangeCode, postForm, refresh, revokeCurrent } from '../support/oauth.ts';
import { startPostgresServer } from '../support/postgres-server.ts';
import { describeOn, postgresServer, redisServer } from '../support/requirements.ts';
import { type Seed, seed } from '../support/seed.ts';
import { forEachDeployment, startTestService, type TestService } from '../support/service.ts';
import { type PartnerTokens, partnerTokens, tokensOf } from './partner-tokens.ts';

/** In whichever form the machine writes its own address. */
const HERE = '127.0.0.1';

forEachDeployment('what ended an authorization', (start) => {
  let service: TestService;
  let seeded: Seed;
  let partner: PartnerTokens;

  before(async () => {
    service = await start();
    seeded = await seed(service);
    partner = partnerTokens(service.issuer, seeded);
  });

  /** What was recorded in the person's log since it was last asked: beside the requests, in no order. */
  async function recorded() {
    await service.revocations.close();
    const rows = await service.database.query<{ actor: string; details: object; address: string }>(
      `WITH taken AS (DELETE FROM activity WHERE action = 'tokens_revoked' AND account_id = $1
          RETURNING *)
        SELECT actor, details, address FROM taken`,
      [seeded.person.accountId],
    );
    return rows.map(({ actor, details, address }) => {
      expect(address).to.match(/127\.0\.0\.1$|^::1$/);
      return { actor, ...details, address: HERE };
    });
  }

  async function record(actor: string, cause: string) {
    const { id } = seeded.clients.confidential;
    const client = await service.clients.find(id);
    return { actor, cause, client_id: id, client_name: client?.name, address: HERE };
  }

  it('is recorded in the person’s log, once, by whom and from where', async () => {
    const { confidential } = seeded.clients;
    const { issuer } = service;
    const { accessToken } = await partner.tokens(confidential);
    expect((await revokeCurrent(issuer, accessToken)).status).to.equal(204);
    expect((await revokeCurrent(issuer, accessToken)).status).to.equal(401);
    const { refreshToken: token } = await partner.tokens(confidential);
    expect(
      (await postForm(issuer, '/oauth/revoke', { token }, { client: confidential })).status,
    ).to.equal(200);
    const given = await record('client', 'client_revoked');
    expect(await recorded()).to.have.deep.members([given, given]);

    const { refreshToken: oldest } = await partner.tokens(confidential);
    const next = tokensOf(await refresh(issuer, confidential, oldest)).refreshToken;
    await refresh(issuer, confidential, next);
    await refresh(issuer, confidential, oldest);
    await refresh(issuer, confidential, oldest);
    const code = await partner.code(confidential);
    await exchangeCode(issuer, confidential, code);
    await exchangeCode(issuer, confidential, code);
    const raced = await partner.code(confidential);
    await Promise.all([1, 2, 3].map(() => exchangeCode(issuer, confidential, raced)));
    const replayed = await record('service', 'code_replayed');
    expect(await recorded()).to.have.deep.members([
      await record('service', 'refresh_token_replayed'),
      ...[replayed, replayed],
    ]);
  });

  it('is remembered of every grant of a connection or a client that ends as a whole', async () => {
    const { connections, revocations, clients } = service;
    const { accountId } = seeded.person;
    for (const [client, cause, end] of [
      [
        seeded.clients.confidential,
        'person_disconnected',
        async () => (await partner.askToDisconnect(seeded.clients.confidential))(),
      ],
      [
        seeded.clients.otherConfidential,
        'client_deleted',
        async () => {
          const revokeGrant = async () => {};
          await clients.remove(seeded.clients.otherConfidential.id, { revokeGrant });
        },
      ],
    ] as const) {
      const older = await connections.grantsOf(accountId, client.id);
      await partner.tokens(client);
      await partner.tokens(client);
      const grants = await connections.grantsOf(accountId, client.id);
      await end();
      for (const grantId of grants.filter((id) => !older.includes(id))) {
        const known = await revocations.find(grantId);
        expect(known).to.include({ accountId, clientId: client.id });
        expect(known?.revoked?.cause).to.equal(cause);
      }
      expect(grants.length - older.length).to.equal(2);
      const [latest] = await service.activity.of(accountId, { limit: 1 });
      expect(latest).to.include({ action: 'disconnected' });
    }
  });

  it('is forgotten when the activity is', async () => {
    const { database, revocations } = service;
    const count = async () => (await database.query('SELECT FROM revoked_grants')).length;
    const before = await count();
    expect(before).to.be.above(2);
    expect(await revocations.removeOlderThan(new Date(Date.now() - 3_600_000), 100)).to.equal(0);
    expect(await revocations.removeOlderThan(new Date(Date.now() + 1_000), 2)).to.equal(2);
    expect(await count()).to.equal(before - 2);
  });
});

describeOn([postgresServer, redisServer], 'a revocation while PostgreSQL is away', () => {
  it('is done all the same; only why is not recorded, which the log says', async () => {
    const postgres = await startPostgresServer();
    const settings = { storage: { databaseUrl: postgres.url } };
    const service = await startTestService({ deployment: 'postgres+redis', settings });
    try {
      const seeded = await seed(service);
      const { confidential } = seeded.clients;
      const partner = partnerTokens(service.issuer, seeded);
      const { accessToken } = await partner.tokens(confidential);
      const { accountId } = seeded.person;
      const [grantId = ''] = await service.connections.grantsOf(accountId, confidential.id);
      expect(await service.store.read('grant', grantId)).to.be.ok;
      await postgres.stop();
      expect((await revokeCurrent(service.issuer, accessToken)).status).to.equal(204);
      expect(await service.store.read('grant', grantId)).to.equal(undefined);
      await service.revocations.close();
      const warnings = service.logLines.filter((line) => line.includes('could not be recorded'));
      expect(warnings).to.have.length(1);
      expect(warnings.join()).to.contain('client_revoked').and.not.contain(accessToken);
    } finally {
      await service.close();
      await postgres.stop();
    }
  });
});
