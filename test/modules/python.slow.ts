/** The Python module against the service, with its client for asyncio and its client for threads. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { expect } from 'chai';
import { tokensOf } from '../provider/partner-tokens.ts';
import { startTcpProxy } from '../storage/tcp-proxy.ts';
import { eventually } from '../support/eventually.ts';
import { clientCredentials, revokeCurrent } from '../support/oauth.ts';
import { createOpened } from '../support/opened.ts';
import { freePort } from '../support/programs.ts';
import { describeOn, postgresServer, redisServer, required } from '../support/requirements.ts';
import { apiKeyOf } from '../support/seed.ts';
import { type Seeded, startSeeded } from '../support/seeded.ts';
import { startsOn } from '../support/service.ts';
import { environment, MODULE, python } from './python.ts';

interface Reply {
  readonly caller?: Record<string, unknown>;
  readonly status?: number;
  readonly reason?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly decided_by?: 'service' | 'memory';
  readonly ended?: boolean;
  readonly ms: number;
}

/** A program that uses the module. */
interface Api {
  call(token: string): Promise<Reply>;
  /** Resolves when the signal of the latest caller has fired. */
  wait(): Promise<Reply>;
  hasEnded(): Promise<boolean | undefined>;
  end(): Promise<void>;
}

/** Starts an API that reaches the service at this port: an internal address, whose Host differs from the issuer's. */
function startApi(kind: string, { issuer, clients }: Seeded, port: number, changes = {}): Api {
  const { id: client_id, secret: client_secret } = clients.resourceServer;
  const introspection_endpoint = `http://127.0.0.1:${port}/oauth/introspect`;
  // The tests may run on a busy machine.
  const usual = { issuer, client_id, client_secret, introspection_endpoint, timeout_seconds: 10 };
  const driver = path.join(MODULE, 'tests/driver.py');
  const child: ChildProcess = spawn(required(python), [driver, kind], {
    cwd: MODULE,
    env: environment,
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const { stdin, stdout } = child;
  if (!stdin || !stdout) throw new Error('no pipes');
  const exited = once(child, 'exit');
  const lines = createInterface(stdout)[Symbol.asyncIterator]();
  const send = (command: object) => stdin.write(`${JSON.stringify(command)}\n`);
  send({ ...usual, ...changes });
  const ask = async (command: object): Promise<Reply> => {
    send(command);
    return JSON.parse(String((await lines.next()).value)) as Reply;
  };
  return {
    call: (token) => ask({ call: token }),
    wait: () => ask({ wait: true }),
    hasEnded: async () => (await ask({ ended: true })).ended,
    async end() {
      stdin.end();
      await exited;
    },
  };
}

/** @returns a token whose caller the API has cached */
async function rememberedToken(api: Api, { partner, clients }: Seeded): Promise<string> {
  const { accessToken } = await partner.tokens(clients.confidential);
  await eventually(async () => {
    await api.call(accessToken);
    expect(await api.call(accessToken)).to.include({ decided_by: 'memory' });
  });
  return accessToken;
}

describeOn([python], 'an API in Python', () => {
  describe("with the Python module's client for threads", () => {
    const on = startSeeded();
    const opened = createOpened();
    let api: Api;
    let proxy: Awaited<ReturnType<typeof startTcpProxy>>;

    beforeEach(async () => {
      const { port } = on.service.settings.server;
      proxy = await opened.add(startTcpProxy(port), ({ close }) => close());
      api = await openApi();
    });
    afterEach(opened.closeAll);

    const openApi = (changes = {}): Promise<Api> =>
      opened.add(Promise.resolve(startApi('sync', on, proxy.port, changes)), ({ end }) => end());
    const tokenOfPerson = async (): Promise<string> => (await on.partner.tokens(on.clients.confidential)).accessToken;

    it('the API identifies a person by a token of a client and by an API key, and identifies a machine client', async () => {
      const { accountId: account_id, email: username } = on.seeded.person;
      const { machine, confidential } = on.clients;
      const person = { subject: account_id, account_id, username };
      const { value: key } = await apiKeyOf(on.service, on.seeded.person);
      const machineToken = tokensOf(await clientCredentials(on.issuer, machine)).accessToken;
      for (const [token, expected] of [
        [await tokenOfPerson(), { ...person, method: 'authorization_code', client_id: confidential.id }],
        [key, { ...person, method: 'api_key' }],
        [machineToken, { method: 'client_credentials', subject: machine.id }],
      ] as const) {
        const { caller } = await api.call(token);
        expect(caller).to.deep.include(expected);
      }
      const { organizations } = (await api.call(key)).caller ?? {};
      expect(organizations).to.have.nested.property('[0].warehouses[0].rights').that.is.not.empty;
    });

    it('a running request learns at once that the token of its caller was revoked, and later requests get 401', async () => {
      const token = await rememberedToken(api, on);
      expect(await api.hasEnded()).to.equal(false);
      const ended = api.wait();
      expect((await revokeCurrent(on.issuer, token)).status).to.equal(204);
      expect((await ended).ended).to.equal(true);
      const { status, headers, decided_by } = await api.call(token);
      expect({ status, decided_by }).to.deep.equal({ status: 401, decided_by: 'service' });
      expect(headers?.['WWW-Authenticate']).to.match(/^Bearer error="invalid_token", /);
    });

    it('no cached answer is used while the service is silent or unreachable, and calls get 503 until it answers', async () => {
      api = await openApi({ timeout_seconds: 1 });
      const token = await rememberedToken(api, on);
      proxy.silence();
      proxy.leadTo(await freePort());
      expect((await api.wait()).ended).to.equal(true);
      const { status, headers } = await api.call(token);
      expect(status).to.equal(503);
      expect(headers).to.include({ 'Retry-After': '2' });
      expect(headers).not.to.have.property('WWW-Authenticate');
      await eventually(async () => expect(await api.call(token)).to.include({ status: 503, reason: 'unreachable' }));
      proxy.leadTo(on.service.settings.server.port);
      await eventually(async () => expect(await api.call(token)).to.include({ decided_by: 'memory' }));
    });

    it('an API with a wrong client secret answers callers with 503, and reports the reason to its operator', async () => {
      api = await openApi({ client_secret: `gate_cs_${'x'.repeat(43)}` });
      const { status, reason } = await api.call(await tokenOfPerson());
      expect({ status, reason }).to.deep.equal({ status: 503, reason: 'credentials_refused' });
    });
  });

  describeOn([postgresServer, redisServer], 'with the client for asyncio, and two nodes', () => {
    const on = startSeeded({ on: 'postgres+redis' });
    const start = startsOn();
    const opened = createOpened();
    afterEach(opened.closeAll);

    it('cached answers are kept when the change stream moves from a leaving node to another node', async () => {
      const settings = { issuer: on.issuer };
      const node = () => start({ sharing: on.service, timeoutFactor: 1, settings });
      const [leaving, other] = [await node(), await node()];
      const proxy = await opened.add(startTcpProxy(leaving.settings.server.port), ({ close }) => close());
      const api = await opened.add(Promise.resolve(startApi('async', on, proxy.port)), ({ end }) => end());
      const accessToken = await rememberedToken(api, on);
      proxy.leadTo(other.settings.server.port);
      let hasLeft = false;
      const left = leaving.leave().then(() => {
        hasLeft = true;
      });
      await eventually(async () => {
        expect(await api.call(accessToken)).to.include({ decided_by: 'memory' });
        expect(hasLeft).to.equal(true);
      });
      await left;
      expect(await api.call(accessToken)).to.include({ decided_by: 'memory' });
      expect(await api.hasEnded()).to.equal(false);
      const ended = api.wait();
      await revokeCurrent(on.issuer, accessToken);
      expect((await ended).ended).to.equal(true);
    });
  });
});
