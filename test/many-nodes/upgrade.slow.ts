/** Upgrades from the previous version and back: nothing unfinished is lost, and both versions run together. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
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
import { mixedDeployment, PREVIOUS, testFinishing, testUpgradeAndRollback, type Version } from './mixed-deployment.ts';
import { KEPT_PATHS, PREVIOUS_VERSION, previousSources } from './previous-version.ts';
import { refreshChain } from './refresh-chains.ts';

const ROOT = path.join(import.meta.dirname, '../..');
const KEYS = {
  GATEHOUSE_COOKIE_KEYS: 'cookie-key-of-the-tests-0123456789abcdef',
  GATEHOUSE_TOKEN_KEYS: 'token-key-of-the-tests-0123456789abcdefg',
};
const DIRECTIONS = [
  ['previous', 'present'],
  ['present', 'previous'],
] as const;

describe('the archived sources of the previous version', () => {
  const git = (...args: readonly string[]): Buffer =>
    execFileSync('git', args, { cwd: ROOT, maxBuffer: 2 ** 28, stdio: 'pipe' });
  const { commit, version } = PREVIOUS_VERSION;

  it('the archived sources are those of the commit in PREVIOUS_VERSION', function () {
    const kept = previousSources();
    // `git archive` writes the commit into the first header.
    expect(kept.subarray(0, 1_024).toString('latin1')).to.include(`comment=${commit}`);
    let archived: Buffer;
    try {
      archived = git('archive', '--format=tar', commit, ...KEPT_PATHS);
    } catch {
      // Skip this in a checkout without the history, which has nothing to compare with.
      return this.skip();
    }
    expect(kept.equals(archived)).to.equal(true);
  });

  it('the archived sources have a lower version than this checkout', () => {
    const { version: present } = JSON.parse(readFileSync(path.join(ROOT, 'package.json'), 'utf8'));
    expect(present.localeCompare(version, 'en', { numeric: true })).to.equal(1);
  });
});

describeOn([postgresServer, redisServer], `an upgrade from ${PREVIOUS}, PostgreSQL and Redis`, () => {
  const on = mixedDeployment(async () => ({
    ...KEYS,
    DATABASE_URL: await freshDatabaseUrl(),
    REDIS_URL: await freshRedisUrl(),
  }));
  testUpgradeAndRollback(on);

  describe('with nodes of both versions', () => {
    before(() => on.start('present'));

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

    it('a chain of refresh tokens continues, whichever version answers', async () => {
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
   * Revokes at a node of one version, and checks APIs, with the module of either version, that
   * introspect at the other.
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
    const apis = [introspectorOf(clients.resourceServer, options), on.previous.createIntrospector(options)];
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
