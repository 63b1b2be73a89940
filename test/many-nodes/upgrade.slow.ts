/** Upgrades from the previous version and back: nothing unfinished is lost, and both versions run together. */
import { expect } from 'chai';
import { bearer, introspectorOf } from '../../modules/node/test/stand-in.ts';
import { valueFrom } from '../operator/run-operator.ts';
import { partnerTokens } from '../provider/partner-tokens.ts';
import { eventually } from '../support/eventually.ts';
import { revokeCurrent } from '../support/oauth.ts';
import { freshDatabaseUrl } from '../support/postgres-server.ts';
import { freshRedisUrl } from '../support/redis-server.ts';
import { describeOn, postgresServer, redisServer } from '../support/requirements.ts';
import { addClient } from './carried-over/clients.ts';
import { startAll, type Unfinished } from './carried-over/world.ts';
import { mixedDeployment, testFinishing, type Version } from './mixed-deployment.ts';
import { HAS_WAY_BACK, PREVIOUS_VERSION } from './previous-version.ts';
import { refreshChain } from './refresh-chains.ts';

const KEYS = {
  GATEHOUSE_COOKIE_KEYS: 'cookie-key-of-the-tests-0123456789abcdef',
  GATEHOUSE_TOKEN_KEYS: 'token-key-of-the-tests-0123456789abcdefg',
};
const BOTH_DIRECTIONS = [
  ['previous', 'present'],
  ['present', 'previous'],
] as const;
const DIRECTIONS = BOTH_DIRECTIONS.slice(0, HAS_WAY_BACK ? 2 : 1);

describeOn([postgresServer, redisServer], `an upgrade from ${PREVIOUS_VERSION.name}, PostgreSQL and Redis`, () => {
  const on = mixedDeployment(async () => ({
    ...KEYS,
    DATABASE_URL: await freshDatabaseUrl(),
    REDIS_URL: await freshRedisUrl(),
  }));

  // One node after the other, as on the embedded deployment, would be a case of both at the same time.
  describe('nodes of the previous and the present version work together', () => {
    before(async () => {
      await on.start('previous');
      await on.setUp();
      await on.start('present');
    });

    for (const [from, to] of DIRECTIONS) {
      describe(`from the ${from} to the ${to} version`, () => {
        let unfinished: Unfinished;
        before(async () => {
          on.serveBy(from);
          unfinished = await startAll(on.world, on.operator(from));
          on.serveBy(to);
        });
        testFinishing(() => unfinished, `a change from the ${from} to the ${to} version`);
      });
    }

    it('a chain of refresh tokens continues while nodes of the previous and the present version alternate', async () => {
      const { issuer, clients } = on.world;
      const { refreshToken } = await partnerTokens(issuer, on.world).tokens(clients.confidential);
      const chain = refreshChain(issuer, clients.confidential, refreshToken);
      for (const version of ['previous', 'present', 'present', 'previous', 'previous'] as const) {
        on.serveBy(version);
        await chain.next();
      }
      expect(chain.length).to.equal(5);
    });

    for (const [from, to] of DIRECTIONS) {
      it(`a revocation at a node of the ${from} version reaches old and new APIs at a node of the ${to} version`, () =>
        expectEndsAreAnnounced({ from, to }));
    }
  });

  /**
   * Revokes at a node of one version, and checks APIs, with the module of either version, that introspect at the other.
   */
  async function expectEndsAreAnnounced(how: { from: Version; to: Version }) {
    const { issuer, clients } = on.world;
    const operator = on.operator(how.from);
    on.serveBy(how.from);
    const { id: clientId, secret: clientSecret = '' } = clients.resourceServer;
    const options = {
      issuer,
      clientId,
      clientSecret,
      live: true,
      timeoutMs: 20_000,
      introspectionEndpoint: `http://localhost:${on.running(how.to).port}/oauth/introspect`,
    };
    const apis = [introspectorOf(clients.resourceServer, options), PREVIOUS_VERSION.createIntrospector(options)];
    const partner = partnerTokens(issuer, on.world);
    const other = await addClient(operator, 'confidential', 'Stock Reports');
    const tokens = {
      revoked: (await partner.tokens(clients.confidential)).accessToken,
      disconnected: (await partner.tokens(other)).accessToken,
      revokedByOperator: (await partner.tokens(clients.public)).accessToken,
    };
    const asked = apis.flatMap((api) => {
      return Object.values(tokens).map((token) => () => api.identify(bearer(token)));
    });
    const signals: (AbortSignal | undefined)[] = [];
    for (const identify of asked) {
      const known = async () => {
        const { caller, decidedBy } = await identify();
        expect(decidedBy).to.equal('memory');
        return caller?.signal;
      };
      signals.push(await eventually(known));
    }
    await revokeCurrent(issuer, tokens.revoked);
    await (await partner.askToDisconnect(other))();
    await valueFrom(operator, ['revoke', '--client', clients.public.id, '--yes']);
    for (const signal of signals) {
      await eventually(() => expect(signal?.aborted).to.equal(true));
    }
    for (const identify of asked) expect((await identify()).refusal?.status).to.equal(401);
    for (const api of apis) api.close();
  }
});
