/** The cache of an API while the node of its stream shuts down, or receives no changes. */
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import type { Introspector } from '../../src/resource-server/resource-server.ts';
import { startTcpProxy, type TcpProxy } from '../storage/tcp-proxy.ts';
import { eventually } from '../support/eventually.ts';
import { revokeCurrent } from '../support/oauth.ts';
import { createOpened } from '../support/opened.ts';
import { describeOn, postgresServer, redisServer } from '../support/requirements.ts';
import { startSeeded } from '../support/seeded.ts';
import { startsOn, type TestService } from '../support/service.ts';
import { bearer, introspectorOf } from './stand-in.ts';

/** The documented maximum delay. */
const MAX_DELAY_MS = 1_000;
const WATCHED_MS = 3_000;
const TICK_MS = 10;

describeOn([postgresServer, redisServer], 'an API with a cache, and two nodes', () => {
  const on = startSeeded();
  const start = startsOn();
  const opened = createOpened();
  let ahead: number;
  let api: Introspector;

  beforeEach(() => {
    ahead = 0;
  });
  afterEach(opened.closeAll);

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
    await eventually(async () => {
      ahead += 6_000;
      await decidedBy(accessToken);
      expect(await decidedBy(accessToken)).to.equal('memory');
    });
    return accessToken;
  }
  const proxyTo = (port: number): Promise<TcpProxy> =>
    opened.add(startTcpProxy(port), (proxy) => proxy.close());
  /** Another node of the same issuer. */
  const startNode = (databaseUrl?: string): Promise<TestService> =>
    start({
      sharing: on.service,
      // Use the timeouts of production.
      timeoutFactor: 1,
      settings: { issuer: on.issuer, ...(databaseUrl && { storage: { databaseUrl } }) },
    });

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

  it('a revoked caller is accepted for at most a second if the database of the node stops answering', async () => {
    const databaseUrl = new URL(on.service.settings.storage.databaseUrl ?? '');
    const database = await proxyTo(Number(databaseUrl.port));
    databaseUrl.port = String(database.port);
    const deaf = await startNode(databaseUrl.href);
    listenTo(deaf.settings.server.port);
    const token = await rememberedToken();
    database.silence();
    const { status } = await revokeCurrent(on.issuer, token);
    expect(status).to.equal(204);
    let lastAccepted = 0;
    // Counts turns of this process, in which node and API run, too: see `ticksOf`.
    for (let ms = TICK_MS; ms <= WATCHED_MS; ms += TICK_MS) {
      await delay(TICK_MS);
      const { caller } = await Promise.race([
        api.identify(bearer(token)),
        // Only a cached answer arrives in the same turn of the event loop.
        new Promise<{ caller?: never }>((later) => setImmediate(() => later({}))),
      ]);
      if (caller) lastAccepted = ms;
    }
    expect(lastAccepted, 'milliseconds').to.be.below(MAX_DELAY_MS);
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
