/** The cache of an API while the node of its stream shuts down, or receives no changes. For faults see `ends.slow.ts`. */
import { once } from 'node:events';
import { expect } from 'chai';
import { tokensOf } from '../../../test/provider/partner-tokens.ts';
import { startTcpProxy, type TcpProxy } from '../../../test/storage/tcp-proxy.ts';
import { eventually } from '../../../test/support/eventually.ts';
import { clientCredentials, introspect, refresh, revokeCurrent } from '../../../test/support/oauth.ts';
import { createOpened } from '../../../test/support/opened.ts';
import { describeOn, postgresServer, redisServer } from '../../../test/support/requirements.ts';
import { addTestClient } from '../../../test/support/seed.ts';
import { startSeeded } from '../../../test/support/seeded.ts';
import { startsOn, type TestService } from '../../../test/support/service.ts';
import type { Introspector } from '../src/resource-server.ts';
import { bearer, cachedCaller, introspectorOf, passOnTo, startStandIn } from './stand-in.ts';

describeOn([postgresServer, redisServer], 'an API with a cache, and two nodes', () => {
  const on = startSeeded();
  const start = startsOn();
  const opened = createOpened();
  let ahead: number;
  let api: Introspector;

  beforeEach(() => {
    ahead = 0;
  });
  afterEach(() => {
    // It would look for a stream of nodes that no longer run.
    api?.close();
    return opened.closeAll();
  });

  const decidedBy = async (token: string) => (await api.identify(bearer(token))).decidedBy;

  function listenTo(port: number, live = true): void {
    const { issuer } = on;
    const introspectionEndpoint = `http://127.0.0.1:${port}/oauth/introspect`;
    const clock = () => Date.now() + ahead;
    const options = { issuer, introspectionEndpoint, clock, live, onFailure: () => {} };
    api = introspectorOf(on.clients.resourceServer, options);
  }
  async function rememberedToken(): Promise<string> {
    const { accessToken } = await on.partner.tokens(on.clients.confidential);
    await cachedCaller(api, accessToken, () => {
      ahead += 6_000;
    });
    return accessToken;
  }
  const proxyTo = (port: number): Promise<TcpProxy> => opened.add(startTcpProxy(port), (proxy) => proxy.close());
  /** Another node of the same issuer. */
  const startNode = (): Promise<TestService> =>
    // With the timeouts of production.
    start({ sharing: on.service, timeoutFactor: 1, settings: { issuer: on.issuer } });

  it('no cached caller is evicted when the node of the change stream shuts down and another is available', async () => {
    const [leaving, other] = [await startNode(), await startNode()];
    const proxy = await proxyTo(leaving.settings.server.port);
    listenTo(proxy.port);
    const token = await rememberedToken();
    const { signal } = (await api.identify(bearer(token))).caller ?? {};
    // Switch to the other node, as a load balancer does when the port is closed.
    proxy.leadTo(other.settings.server.port);
    let hasLeft = false;
    const left = leaving.leave().then(() => {
      hasLeft = true;
    });
    await eventually(async () => {
      expect(await decidedBy(token)).to.equal('memory');
      expect(hasLeft).to.equal(true);
    });
    await left;
    expect(await decidedBy(token)).to.equal('memory');
    expect(signal?.aborted).to.equal(false);
    await revokeCurrent(on.issuer, token);
    await eventually(() => expect(signal?.aborted).to.equal(true));
  });

  it('no cached caller is evicted if a proxy sends the next stream request to the leaving node on an old connection', async () => {
    const [leaving, other] = [await startNode(), await startNode()];
    const passOn = ({ settings: { server } }: TestService) => passOnTo(`http://127.0.0.1:${server.port}`);
    let isRefused = false;
    const streams: Promise<unknown>[] = [];
    const proxy = await startStandIn(async (answer, form, asked) => {
      if (asked.method === 'GET') streams.push(once(answer, 'close'));
      await passOn(isRefused ? other : leaving)(answer, form, asked);
      isRefused ||= answer.statusCode === 503;
    });
    listenTo(Number(new URL(proxy.origin).port));
    const token = await rememberedToken();
    await leaving.leave();
    await streams[0];
    const { accessToken: another } = await on.partner.tokens(on.clients.confidential);
    // This answer arrives after the end of the first stream.
    expect(await decidedBy(another)).to.equal('service');
    expect(isRefused).to.equal(true);
    expect(await decidedBy(token)).to.equal('memory');
  });

  it('a node that missed the renewal of a client gives a thief no token that works elsewhere or after it is notified', async () => {
    const { issuer } = await start({ sharing: on.service });
    const client = await addTestClient(on.service, 'Robbed Planner');
    const robot = await addTestClient(on.service, 'Robbed Robot', { kind: 'machine' });
    const tokens = await on.partner.tokens(client);
    const machineToken = () => clientCredentials(issuer, robot);
    const refreshed = (token: string) => refresh(issuer, client, token);
    const isActiveAtDeaf = async (token: string) =>
      (await introspect(issuer, on.clients.resourceServer, token)).body.active;
    expect((await machineToken()).status, 'the node remembers the client').to.equal(200);
    const mine = tokensOf(await refreshed(tokens.refreshToken));

    const stolen: string[] = [];
    let lifted = '';
    const listen = (verb: string) =>
      Promise.all(
        ['clients', 'client_secrets'].map((table) =>
          on.service.database.query(`ALTER TABLE ${table} ${verb} TRIGGER USER`),
        ),
      );
    await listen('DISABLE');
    try {
      const renewed = { ...client, secret: (await on.service.clients.renew(client.id)).secret };
      await on.service.clients.renew(robot.id);
      const [thief, ofRobot] = [await refreshed(mine.refreshToken), await machineToken()];
      expect([thief.status, ofRobot.status], 'the node has heard nothing').to.deep.equal([200, 200]);
      stolen.push(tokensOf(thief).accessToken, tokensOf(ofRobot).accessToken);
      for (const token of stolen) expect(await on.partner.isActive(token)).to.equal(false);
      // The partner continues on a node that has heard, with the token that it has.
      lifted = tokensOf(await refresh(on.issuer, renewed, mine.refreshToken)).accessToken;
      expect((await refreshed(tokensOf(thief).refreshToken)).status).to.equal(400);
    } finally {
      await listen('ENABLE');
    }
    await on.service.database.query('UPDATE clients SET updated_at = now() WHERE id = ANY ($1)', [
      [client.id, robot.id],
    ]);
    await eventually(async () => {
      for (const token of stolen) expect(await isActiveAtDeaf(token)).to.equal(false);
      expect((await machineToken()).status).to.equal(401);
      expect((await refreshed(mine.refreshToken)).status).to.equal(401);
    });
    expect(await isActiveAtDeaf(lifted)).to.equal(true);
  });

  it('a node that is notified of a revocation before the token store has it does not cache the old state', async () => {
    const node = await startNode();
    const { accessToken } = await on.partner.tokens(on.clients.confidential);
    listenTo(node.settings.server.port, false);
    const { caller } = await api.identify(bearer(accessToken));
    if (caller?.method !== 'authorization_code') throw new Error('refused');
    const { authorization } = caller;
    const announce = "SELECT pg_notify('gatehouse_named_changes', 'authorizations ' || $1)";
    await node.database.query(announce, [authorization]);
    // The token store does not have the revocation yet.
    expect(await api.identify(bearer(accessToken))).to.have.property('caller');
    await node.store.endAuthorization(String(authorization));
    expect((await api.identify(bearer(accessToken))).refusal?.status).to.equal(401);
  });
});
