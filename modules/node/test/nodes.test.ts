/** The cache of an API while the node of its stream shuts down, or receives no changes. */
import { once } from 'node:events';
import { get, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { partnerTokens, tokensOf } from '../../../test/provider/partner-tokens.ts';
import { startTcpProxy, type TcpProxy } from '../../../test/storage/tcp-proxy.ts';
import { eventually } from '../../../test/support/eventually.ts';
import { basic, clientCredentials, refresh, revokeCurrent, type TestClient } from '../../../test/support/oauth.ts';
import { createOpened } from '../../../test/support/opened.ts';
import { describeOn, postgresServer, redisServer } from '../../../test/support/requirements.ts';
import { addTestClient } from '../../../test/support/seed.ts';
import { startSeeded } from '../../../test/support/seeded.ts';
import { startsOn, type TestService } from '../../../test/support/service.ts';
import type { Introspector } from '../src/resource-server.ts';
import { bearer, introspectorOf, passOnTo, startStandIn } from './stand-in.ts';

/** The documented maximum delay. */
const MAX_DELAY_MS = 1_000;
const WATCHED_MS = 3_000;
const TICK_MS = 10;
const PATH = '/oauth/introspect/changes';
const AT = /: at=(\S+)\n/;

describeOn([postgresServer, redisServer], 'an API with a cache, and two nodes', () => {
  const on = startSeeded();
  const start = startsOn();
  const opened = createOpened();
  let ahead: number;
  /** The time at which the clock of the API stopped, in milliseconds since the epoch. */
  let stoppedAt: number | undefined;
  let api: Introspector;

  beforeEach(() => {
    ahead = 0;
    stoppedAt = undefined;
  });
  afterEach(opened.closeAll);

  const decidedBy = async (token: string) => (await api.identify(bearer(token))).decidedBy;

  function listenTo(port: number, live = true): void {
    const { issuer } = on;
    const introspectionEndpoint = `http://127.0.0.1:${port}/oauth/introspect`;
    const clock = () => (stoppedAt ?? Date.now()) + ahead;
    const options = { issuer, introspectionEndpoint, clock, live, onFailure: () => {} };
    api = introspectorOf(on.clients.resourceServer, options);
  }
  async function rememberedToken(): Promise<string> {
    const { accessToken } = await on.partner.tokens(on.clients.confidential);
    await remember(accessToken);
    return accessToken;
  }
  async function remember(accessToken: string): Promise<void> {
    await eventually(async () => {
      ahead += 6_000;
      await decidedBy(accessToken);
      expect(await decidedBy(accessToken)).to.equal('memory');
    });
  }
  const proxyTo = (port: number): Promise<TcpProxy> => opened.add(startTcpProxy(port), (proxy) => proxy.close());
  /** Another node of the same issuer. */
  const startNode = (databaseUrl?: string): Promise<TestService> =>
    start({
      sharing: on.service,
      // Use the timeouts of production.
      timeoutFactor: 1,
      settings: { issuer: on.issuer, ...(databaseUrl && { storage: { databaseUrl } }) },
    });

  /** Reads the stream of the node at this port until it contains `wanted`. @returns the text so far */
  async function readStream(port: number, after: string, wanted: RegExp): Promise<string> {
    const headers = { authorization: basic(on.clients.resourceServer), 'last-event-id': after };
    // Unlike `fetch`, this can send the host of the issuer, which the service requires.
    const asked = get({ port, path: PATH, headers: { ...headers, host: new URL(on.issuer).host } });
    const [answer] = await once(asked, 'response');
    let text = '';
    for await (const piece of answer) {
      text += piece;
      if (wanted.test(text)) break;
    }
    return text;
  }
  /** Resolves when the second node can repeat the changes since the last heartbeat of the first. */
  async function canContinue(...nodes: readonly TestService[]): Promise<void> {
    const [from = 0, to = 0] = nodes.map(({ settings }) => settings.server.port);
    await eventually(async () => {
      const [, position = ''] = AT.exec(await readStream(from, '', AT)) ?? [];
      expect(await readStream(to, position, /\n\n/)).to.include('repeated');
    });
  }

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

  it('no cached caller is evicted if a proxy sends the request for the next stream to the leaving node, on a connection that it kept', async () => {
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

  it('after a crash of the node of the change stream, only callers that have changed meanwhile are introspected', async () => {
    const crashing = await startNode();
    const proxy = await proxyTo(crashing.settings.server.port);
    listenTo(proxy.port);
    const revoked = await rememberedToken();
    const { body } = await clientCredentials(on.issuer, on.clients.machine);
    const kept = String(body.access_token);
    await remember(kept);
    // This takes two seconds: as far back, changes are repeated although the API has heard them.
    const other = await startNode();
    await canContinue(crashing, other);
    // A stream that repeats nothing would let the API cache nothing for five seconds.
    stoppedAt = Date.now();
    proxy.leadTo(other.settings.server.port);
    proxy.breakAll();
    await revokeCurrent(on.issuer, revoked);
    // Without a new stream, each call is introspected.
    await eventually(async () => expect(await decidedBy(kept)).to.equal('memory'));
    expect((await api.identify(bearer(revoked))).refusal?.status).to.equal(401);
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

  it('a renewal of a client ends what APIs remember of this client for all its people, and nothing else', async () => {
    const node = await startNode();
    const client = await addTestClient(on.service, 'Robbed Planner');
    const { port } = node.settings.server;
    listenTo(port);
    const tokens: string[] = [];
    for (const person of [on.seeded.person, on.seeded.other]) {
      const { accessToken } = await partnerTokens(on.issuer, { ...on.seeded, person }).tokens(client);
      await remember(accessToken);
      tokens.push(accessToken);
    }
    const { accessToken: kept } = await on.partner.tokens(on.clients.confidential);
    await remember(kept);
    await on.service.clients.renew(client.id);
    await eventually(async () => {
      for (const token of tokens) expect((await api.identify(bearer(token))).refusal?.status).to.equal(401);
    });
    expect(await decidedBy(kept)).to.equal('memory');
  });

  it('a node that does not hear of a renewal gives a thief nothing that is valid once it hears, or on another node', async () => {
    const deaf = await startNode();
    const issuer = `http://127.0.0.1:${deaf.settings.server.port}`;
    const client = await addTestClient(on.service, 'Robbed Planner');
    const robot = await addTestClient(on.service, 'Robbed Robot', { kind: 'machine' });
    const tokens = await on.partner.tokens(client);
    const host = { host: new URL(on.issuer).host };
    const ask = async (path: string, by: TestClient, form: Record<string, string>) => {
      const headers = { ...host, authorization: basic(by), 'content-type': 'application/x-www-form-urlencoded' };
      const body = new URLSearchParams(form).toString();
      const asked = request(issuer + path, { method: 'POST', headers });
      asked.end(body);
      const [answer] = await once(asked, 'response');
      return { status: answer.statusCode, body: JSON.parse((await text(answer)) || '{}') };
    };
    const machineToken = () => ask('/oauth/token', robot, { grant_type: 'client_credentials' });
    const refreshed = (token: string) =>
      ask('/oauth/token', client, { grant_type: 'refresh_token', refresh_token: token });
    const isActiveAtDeaf = async (token: string) =>
      (await ask('/oauth/introspect', on.clients.resourceServer, { token })).body.active;
    expect((await machineToken()).status, 'the node remembers the client').to.equal(200);
    const mine = (await refreshed(tokens.refreshToken)).body;

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
      const thief = await refreshed(mine.refresh_token);
      const ofRobot = await machineToken();
      expect([thief.status, ofRobot.status], 'the node has heard nothing').to.deep.equal([200, 200]);
      stolen.push(thief.body.access_token, ofRobot.body.access_token);
      for (const token of stolen) expect(await on.partner.isActive(token)).to.equal(false);
      // The partner continues on a node that has heard, with the token that it has.
      lifted = tokensOf(await refresh(on.issuer, renewed, mine.refresh_token)).accessToken;
      expect((await refreshed(thief.body.refresh_token)).status).to.equal(400);
    } finally {
      await listen('ENABLE');
    }
    await on.service.database.query('UPDATE clients SET updated_at = now() WHERE id = ANY ($1)', [
      [client.id, robot.id],
    ]);
    await eventually(async () => {
      for (const token of stolen) expect(await isActiveAtDeaf(token)).to.equal(false);
      expect((await machineToken()).status).to.equal(401);
      expect((await refreshed(mine.refresh_token)).status).to.equal(401);
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
