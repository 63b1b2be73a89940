import { once } from 'node:events';
import { request } from 'node:http';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import { pino } from 'pino';
import type { Action } from '../../src/accounts/activity/activity-words.ts';
import { createAudit } from '../../src/accounts/activity/audit.ts';
import { logMixin } from '../../src/base/current-request.ts';
import { requestLine } from '../../src/host/request-log.ts';
import { signedIn } from '../pages/signed-in-person.ts';
import { eventually } from '../support/eventually.ts';
import { counted, scrape } from '../support/metrics.ts';
import {
  authorizationUrl,
  clientCredentials,
  exchangeCode,
  introspect,
  postForm,
  refresh,
  revokeCurrent,
} from '../support/oauth.ts';
import { createPerson } from '../support/person.ts';
import { rawRequest } from '../support/raw-request.ts';
import { seed } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';
import { startsOn, type TestService } from '../support/service.ts';

type Line = Readonly<Record<string, unknown>>;

const entriesOf = ({ logLines }: TestService): Line[] => logLines.map((line) => JSON.parse(line));

describe('every answered request has a log line without secrets', () => {
  const start = startsOn();
  const on = startSeeded({ on: start });

  const linesOf = (headers: Headers): Line[] => {
    const id = headers.get('x-request-id');
    expect(id).to.match(/^req_[0-9a-f]{16}$/);
    return entriesOf(on.service).filter(({ requestId }) => requestId === id);
  };
  const lineOf = (headers: Headers): Line => linesOf(headers).find(({ msg }) => msg === 'request') ?? {};

  it('every kind of answer has a log line, which can be found by the request id', async () => {
    const { issuer, operatorsUrl } = on.service;
    const { port, host } = new URL(issuer);
    const raw = (path: string, headers: Record<string, string> = { host }) =>
      rawRequest(Number(port), path, { headers });
    const get = async (url: string, init: RequestInit = {}) => {
      const answer = await fetch(url, { redirect: 'manual', ...init });
      await answer.text();
      return answer;
    };
    const form = {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    };
    const stylesheet = /\/assets\/[^"]+\.css/.exec(await (await fetch(`${issuer}/login`)).text());
    const answers: [number, { status: number; headers: Headers }][] = [
      [200, await get(`${issuer}/login`)],
      [200, await get(`${issuer}/login`, { method: 'HEAD' })],
      [200, await get(issuer + stylesheet)],
      [303, await get(`${issuer}/profile`)],
      [400, await get(`${issuer}/oauth/authorize?client_id=none`)],
      [401, await get(`${issuer}/oauth/token`, form)],
      [400, await withoutHost(Number(port))],
      [401, await get(`${issuer}/oauth/introspect`, form)],
      [403, await get(`${issuer}/login`, form)],
      [404, await get(`${issuer}/nothing`)],
      [405, await get(`${issuer}/oauth/token`, { method: 'PUT' })],
      [405, await get(`${issuer}/login`, { method: 'DELETE' })],
      [413, await get(`${issuer}/login`, { ...form, body: 'a'.repeat(300_000) })],
      [421, await raw('/login', { host: 'elsewhere.example' })],
      [431, await raw('/login', { host, long: 'a'.repeat(40_000) })],
      [200, await raw('/login', { host, expect: 'the-impossible' })],
      [404, await get(`${operatorsUrl}/profile`)],
      [405, await get(`${operatorsUrl}/reload`, { method: 'PUT' })],
    ];
    for (const [index, [status, answer]] of answers.entries()) {
      expect(answer.status, `answer ${index}`).to.equal(status);
      const lines = linesOf(answer.headers).filter((line) => line.status === status);
      expect(lines, `answer ${index}, ${status}`).to.have.length(1);
    }
  });

  it('health probes and metrics scrapes are logged only at level debug, unless they fail', async () => {
    const probed = async (service: TestService, host?: string) => {
      const { port } = new URL(service.operatorsUrl);
      const { length: earlier } = service.logLines;
      for (const path of ['/healthz', '/readyz', '/metrics']) {
        const headers = { host: host ?? `127.0.0.1:${port}` };
        const answer = await rawRequest(Number(port), path, { headers });
        expect(answer.status, path).to.equal(path === '/metrics' && host ? 421 : 200);
      }
      return entriesOf(service)
        .slice(earlier)
        .filter(({ listener, msg }) => listener === 'operators' && msg === 'request')
        .map(({ path, level }) => `${path} ${level}`);
    };
    const usual = await start({ settings: { log: { level: 'info' } } });
    expect(await probed(usual)).to.deep.equal([]);
    expect(await probed(usual, 'elsewhere.example')).to.deep.equal(['/metrics 30']);
    // The other services of tests log at level debug.
    expect(await probed(on.service)).to.deep.equal(['/healthz 20', '/readyz 20', '/metrics 20']);
  });

  it('audit entries have the request id of the log line of their request', async () => {
    const { service } = on;
    const person = await signedIn(on, on.seeded.person);
    const { confidential } = on.seeded.clients;
    const redirect = await person.authorize(authorizationUrl(on.issuer, confidential), on.seeded.person);
    const code = redirect.searchParams.get('code') ?? '';
    await exchangeCode(on.issuer, confidential, code);
    const replayed = await exchangeCode(on.issuer, confidential, code);
    const audit = createAudit(service);
    const routeOf = ({ requestId }: { requestId?: string }) =>
      entriesOf(service).find((line) => line.msg === 'request' && line.requestId === requestId)?.route;
    const newest = async (action: Action) => (await audit.find({ action, limit: 1 }))[0] ?? {};
    expect(routeOf(await newest('signed_in'))).to.equal('/login');
    await eventually(async () => {
      const { requestId } = (await newest('tokens_revoked')) as { requestId?: string };
      expect(requestId).to.equal(replayed.headers.get('x-request-id'));
    });
    const requestId = replayed.headers.get('x-request-id') ?? '';
    const found = await audit.find({ requestId, limit: 10 });
    expect(found.map(({ action }) => action)).to.deep.equal(['tokens_revoked']);
  });

  it("the log line of a request contains its method and path, and never the caller's X-Request-Id", async () => {
    const headers = { 'x-request-id': 'req_of-the-caller' };
    const answer = await fetch(`${on.issuer}/login?code=x`, { method: 'HEAD', headers });
    const asked = { method: 'HEAD', path: '/login', status: 200, ip: '127.0.0.1' };
    expect(lineOf(answer.headers)).to.include(asked);
    expect(on.service.logLines.join('')).not.to.include('req_of-the-caller');
  });

  it('the cause of an internal failure is logged with the request id of the answer, and no secret from the path', async () => {
    const broken = await start();
    const { clients, person: account } = await seed(broken);
    const person = await signedIn(broken, account);
    for (const table of ['clients', 'connections']) {
      await broken.database.query(`ALTER TABLE ${table} RENAME TO ${table}_elsewhere`);
    }
    const page = await fetch(authorizationUrl(broken.issuer, clients.confidential));
    const json = await introspect(broken.issuer, clients.resourceServer, 'gate_at_none');
    expect(await page.text()).to.include(page.headers.get('x-request-id') ?? 'no reference');
    for (const { status, headers } of [page, json]) {
      expect(status).to.equal(500);
      const reference = headers.get('x-request-id');
      const lines = entriesOf(broken).filter(({ requestId }) => requestId === reference);
      const cause = lines.find(({ level }) => level === 50);
      expect(cause?.err).to.include({ code: '42P01' });
      expect(lines.at(-1)).to.include({ msg: 'request', status: 500 });
    }
    const value = `gate_at_${'x'.repeat(43)}`;
    expect((await person.get(`/profile/connections/${value}`)).status).to.equal(500);
    const failures = broken.logLines.filter((line) => line.includes('"level":50'));
    expect(failures.join('')).to.include('/profile/connections/gate_at_…');
    expect(broken.logLines.join('')).not.to.include(value);
  });

  it('the log line of a request names the client, the authorization, and the account by its id', async () => {
    const { issuer } = on;
    const { person: account, clients } = on.seeded;
    const { confidential, resourceServer, machine } = clients;
    const { accountId } = account;
    const person = createPerson(issuer);
    const redirect = await person.authorize(authorizationUrl(issuer, confidential), account);
    const code = redirect.searchParams.get('code') ?? '';
    const exchanged = await exchangeCode(issuer, confidential, code);
    const refreshed = await refresh(issuer, confidential, String(exchanged.body.refresh_token));
    const token = String(refreshed.body.access_token);
    // Take the public part of the token, the id of its authorization.
    const authorization = token.slice('gate_at_'.length).slice(0, 22);

    const clientId = confidential.id;
    const route = '/oauth/token';
    const about = { route, status: 200, clientId, authorization, accountId };
    expect(lineOf(exchanged.headers)).to.include(about);
    expect(lineOf(refreshed.headers)).to.include(about);
    const asked = lineOf((await introspect(issuer, resourceServer, token)).headers);
    expect(asked).to.include({
      clientId: resourceServer.id,
      authorization,
      route: '/oauth/introspect',
    });
    expect(lineOf((await person.get('/profile')).headers)).to.include({ accountId });
    expect(lineOf((await clientCredentials(issuer, machine)).headers).clientId).to.equal(machine.id);
    const wrong = { ...confidential, secret: 'gate_cs_wrong' };
    const refused = await postForm(issuer, '/oauth/revoke', { token }, { client: wrong });
    expect(lineOf(refused.headers)).to.include({ status: 401, clientId });
    const ended = await revokeCurrent(issuer, token);
    expect(lineOf(ended.headers)).to.include({ status: 204, clientId, authorization });
    const replayed = await exchangeCode(issuer, confidential, code);
    const refusals = linesOf(replayed.headers).filter(({ msg }) => msg === 'token refused');
    expect(refusals).to.have.length(1);
    expect(refusals[0]).to.include({ clientId, error: 'invalid_grant' });
    expect(refusals[0]?.cause).to.be.a('string').and.not.equal('');
    expect(on.service.logLines.join('')).not.to.include(account.email);
  });

  it('the log line of a request names no unauthenticated client, and shortens long paths and tokens', async () => {
    const { issuer } = on;
    const unknown = { id: 'gate_ci_nobody', secret: 'gate_cs_none', redirectUri: '' };
    const refused = await introspect(issuer, unknown, 'gate_at_none');
    expect(lineOf(refused.headers).clientId).to.equal(undefined);
    const long = await fetch(`${issuer}/${'x'.repeat(5_000)}`);
    expect(String(lineOf(long.headers).path)).to.have.length.below(210);
    const value = `gate_at_${'x'.repeat(43)}`;
    const misplaced = await fetch(`${issuer}/oauth/introspect/${value}/more`);
    expect(lineOf(misplaced.headers).path).to.equal('/oauth/introspect/gate_at_…/more');
    const cutOff = await fetch(`${issuer}/${value.slice(0, 30)}`);
    expect(lineOf(cutOff.headers).path).to.equal('/gate_at_…');
  });

  it('the log line of a request contains its duration, even if the injected clock stands still', async () => {
    const answers = await Promise.all(Array.from({ length: 5 }, () => fetch(`${on.issuer}/login`)));
    const times = answers.map(({ headers }) => Number(lineOf(headers).ms));
    for (const ms of times) expect(ms).to.be.at.least(0.001);
    expect(times.some((ms) => !Number.isInteger(ms))).to.equal(true);
  });

  it('a client that disconnected before the answer is logged with status 499', async () => {
    const { port, host } = new URL(on.issuer);
    const left = () => entriesOf(on.service).filter(({ status }) => status === 499);
    expect(left()).to.deep.equal([]);
    const socket = connect(Number(port), '127.0.0.1');
    await once(socket, 'connect');
    const head = `POST /login HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 100\r\n`;
    const type = 'Content-Type: application/x-www-form-urlencoded\r\n\r\n';
    socket.write(`${head}${type}email=`);
    // Send this request first: the service reads its headers before those of the next connection.
    const next = request(`${on.issuer}/login`, { agent: false }).end();
    await once(next, 'response');
    socket.destroy();
    await eventually(() => expect(left()).to.have.length(1));
    expect(left()[0]).to.include({ route: '/login', method: 'POST', ip: '127.0.0.1' });
    const requests = counted(await scrape(on.service), 'gatehouse_http_requests_total');
    expect(requests['{route="/login",method="POST",status="499"}']).to.equal(1);
  });
});

describe('the log line of a request has the format of pino', () => {
  const HOSTILE = [
    '',
    '/"}\\u0022,"status":200,"x":"',
    '\\',
    Array.from({ length: 0x120 }, (_, code) => String.fromCharCode(code)).join(''),
    '\u2028\u2029\ufeff\u202e\u{1f600}/\x1b[2J\r\n{"level":60}',
    `/${'long"\n'.repeat(20_000)}`,
    ...['__proto__', 'toString', 'null', '-0', '%00'],
  ];
  const line = { method: 'GET', path: '/', route: 'unmatched', status: 404, ip: '192.0.2.1', ms: 0.001 };
  const lines: string[] = [];
  const stream = {
    [Symbol.for('pino.metadata')]: true,
    lastLevel: 0,
    write: (text: string) => void lines.push(`${stream.lastLevel} ${text.replace(/"time":\d+/, '"time":0')}`),
  };
  const log = pino({ level: 'debug', mixin: logMixin }, stream);

  function expectAsPino(
    level: 'debug' | 'info',
    fields: Parameters<ReturnType<typeof requestLine>>[1],
    to = log,
  ): void {
    lines.length = 0;
    requestLine(to)(level, fields);
    to[level](fields, 'request');
    const [ours, theirs] = lines;
    expect(ours).to.equal(theirs);
    expect(ours?.indexOf('\n'), 'it is one line').to.equal((ours?.length ?? 0) - 1);
    expect(JSON.parse(ours?.slice(3) ?? '')).to.deep.include(JSON.parse(JSON.stringify(fields)));
  }

  it('the log line is byte for byte as pino would write it, whatever a caller puts into its fields', () => {
    const names = ['requestId', 'method', 'path', 'route', 'ip', 'clientId', 'accountId', 'cause'];
    for (const value of HOSTILE) {
      for (const name of names) expectAsPino('info', { ...line, [name]: value });
      expectAsPino('debug', Object.fromEntries(names.map((name) => [name, value])));
    }
    for (const ms of [0, 0.001, 1e21, 1e-7, 12_345.678]) expectAsPino('info', { ...line, ms });
    expectAsPino('info', { ...line, accountId: undefined }, log.child({ node: 'a"b' }));
  });

  it('an unpaired surrogate is escaped, because UTF-8 cannot encode it', () => {
    lines.length = 0;
    requestLine(log)('info', { ...line, path: '/\ud800' });
    expect(lines.join(''))
      .to.include('"path":"/\\ud800"')
      .and.satisfy((text: string) => text.isWellFormed());
  });
});

/** Sends a request without Host, which `rawRequest` cannot do. */
async function withoutHost(port: number): Promise<{ status: number; headers: Headers }> {
  const socket = connect(port, '127.0.0.1');
  socket.end('GET /login HTTP/1.1\r\n\r\n');
  const [start = '', ...lines] = (await text(socket)).split('\r\n\r\n')[0]?.split('\r\n') ?? [];
  const headers = lines.map((line): [string, string] => {
    const [name = '', ...value] = line.split(': ');
    return [name, value.join(': ')];
  });
  return { status: Number(start.split(' ')[1]), headers: new Headers(headers) };
}
