/** Subscriptions end when the access ends, at each server of the guide. */
import type { AddressInfo, Server } from 'node:net';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect } from 'chai';
import { createClient as createStreamClient, type NetworkError } from 'graphql-sse';
import { type Client, createClient as createSocketClient } from 'graphql-ws';
import { NO_LIMIT } from '../../../src/accounts/access/access-limit.ts';
import { atEndOfFile } from '../../../test/support/end-of-run.ts';
import { eventually } from '../../../test/support/eventually.ts';
import { revokeCurrent } from '../../../test/support/oauth.ts';
import { startSeeded } from '../../../test/support/seeded.ts';
import { temporaryDirectory } from '../../../test/support/temporary-directory.ts';
import { writeGuideTo } from './guide.ts';
import { cachedCaller } from './stand-in.ts';

const query = 'subscription { stockChanged }';

type Iterate = Pick<Client, 'iterate'>['iterate'];

const overEvents = (url: URL, authorization: string): Iterate => {
  const headers = { authorization };
  return createStreamClient({ url: url.href, headers, retryAttempts: 0 }).iterate as Iterate;
};
const overSocket = (url: URL, authorization: string): Iterate => {
  const address = url.href.replace('http', 'ws');
  return createSocketClient({ url: address, connectionParams: { authorization }, retryAttempts: 0 }).iterate;
};

const CLIENTS = { sse: overEvents, ws: overSocket, yoga: overEvents };

describe('a GraphQL subscription ends when its caller loses access', () => {
  // Close the program of the guide before the service.
  after(() => guide?.introspector.close());
  const on = startSeeded({ clock: true });
  const project = temporaryDirectory('subscriptions');
  let guide: {
    introspector: import('../src/resource-server.ts').Introspector;
    stock: import('node:events').EventEmitter;
  };

  const load = (file: string) => import(pathToFileURL(path.join(project, file)).href);

  before(async () => {
    const servers = Object.keys(CLIENTS).map((name) => `${name}.mjs`);
    const packages = ['graphql', 'graphql-sse', 'graphql-ws', 'graphql-yoga', 'ws'];
    writeGuideTo(project, ['schema.mjs', ...servers], packages);
    const { id, secret } = on.clients.resourceServer;
    Object.assign(process.env, {
      ISSUER: on.issuer,
      CLIENT_ID: id,
      CLIENT_SECRET: secret,
      PORT: '0',
    });
    guide = await load('schema.mjs');
    atEndOfFile(() => {
      for (const name of ['ISSUER', 'CLIENT_ID', 'CLIENT_SECRET', 'PORT']) delete process.env[name];
    });
  });

  /** Returns the token of a caller that the API has cached. */
  async function userWithToken(): Promise<{ token: string; authorization: string }> {
    const { accessToken: token } = await on.partner.tokens(on.clients.confidential);
    const { signal } = await cachedCaller(guide.introspector, token, () => on.clock.advance(6));
    expect(signal?.aborted).to.equal(false);
    return { token, authorization: `Bearer ${token}` };
  }

  /** Starts the guide's server with this name, unless it already runs. @returns its URL */
  async function urlOf(name: string): Promise<URL> {
    const { server } = (await load(`${name}.mjs`)) as { server: Server };
    atEndOfFile(() => void server.close());
    if (!server.address()) await new Promise((resolve) => server.once('listening', resolve));
    return new URL(`http://localhost:${(server.address() as AddressInfo).port}/graphql`);
  }

  /** Subscribes, and waits for the first event. @returns the end: `complete`, or an error */
  async function subscribe(iterate: Iterate): Promise<{ end: Promise<unknown> }> {
    const received: unknown[] = [];
    let isOver = false;
    const end = (async () => {
      for await (const { data } of iterate({ query })) received.push(data);
      return 'complete';
    })()
      .catch((error: unknown) => error)
      .finally(() => (isOver = true));
    await eventually(() => {
      guide.stock.emit('changed', 'pallets');
      expect(received).to.deep.include({ stockChanged: 'pallets' });
    });
    expect(isOver).to.equal(false);
    return { end };
  }

  it('a GraphQL subscription ends when the user limits the client to another organization', async () => {
    const url = await urlOf('sse');
    const { authorization } = await userWithToken();
    const { end } = await subscribe(overEvents(url, authorization));
    const ids = { accountId: on.seeded.person.accountId, clientId: on.clients.confidential.id };
    const limit = { ...NO_LIMIT, places: [on.seeded.elsewhere.id] };
    expect(await on.service.connections.limit({ ...ids, limit: NO_LIMIT }, limit)).to.equal(true);
    expect(await end).to.equal('complete');
    const { caller } = await guide.introspector.identify({ headers: { authorization } });
    expect(caller?.organizations).to.deep.equal([]);
    await on.service.connections.limit({ ...ids, limit }, NO_LIMIT);
  });

  for (const [name, over] of Object.entries(CLIENTS)) {
    it(`a GraphQL subscription of the example ${name}.mjs ends when its caller loses access`, async () => {
      const url = await urlOf(name);
      const { token, authorization } = await userWithToken();
      const { end } = await subscribe(over(url, authorization));
      expect((await revokeCurrent(on.issuer, token)).status).to.equal(204);
      if (name === 'ws') expect(await end).to.include({ code: 4403 });
      else expect(await end).to.equal('complete');

      const again = over(url, authorization)({ query });
      const refusal: unknown = await again.next().catch((error: unknown) => error);
      if (name === 'ws') expect(refusal).to.include({ code: 4403 });
      else expect((refusal as NetworkError).response?.status).to.equal(401);
    });
  }
});
