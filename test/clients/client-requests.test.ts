import { expect } from 'chai';
import { pino } from 'pino';
import type { Client } from '../../src/clients/client.ts';
import { createClientRegistry } from '../../src/clients/client-registry.ts';
import { type ClientRequest, type ClientRequests, createClientRequests } from '../../src/clients/client-requests.ts';
import { withoutValues } from '../../src/clients/storable-text.ts';
import { silentChangeFeed } from '../../src/storage/change-feed.ts';
import { testDatabase } from '../support/databases.ts';
import { eventually } from '../support/eventually.ts';
import { recordedProblems } from '../support/recorded-problems.ts';
import { machine } from './drafts.ts';

const DAY = 86_400_000;
const log = pino({ level: 'silent' });

describe('recent problems of a client', () => {
  let now = Date.parse('2031-02-03T04:05:06.789Z');
  const clock = () => now;
  const database = testDatabase();
  // As on a running node, where the client of a request is cached.
  const registry = createClientRegistry({ database, changes: { ...silentChangeFeed, isLive: true }, clock });
  let problems: ClientRequests;
  const parts = { database, clients: registry, clock, log };
  let client: Client;

  beforeEach(async () => {
    problems = createClientRequests(parts);
    client = (await registry.add(machine)).client;
  });
  afterEach(() => problems.close());

  const problem = (requestId: string, more: Partial<ClientRequest> = {}): ClientRequest => ({
    clientId: client.id,
    step: 'token',
    error: 'invalid_grant',
    cause: 'authorization code was already used',
    requestId,
    ...more,
  });
  /** A problem that equals no other. */
  const another = (requestId: string, more: Partial<ClientRequest> = {}) =>
    problem(requestId, { cause: `cause of ${requestId}`, ...more });
  const recorded = () => recordedProblems({ clientRequests: problems, database }, client.id);
  const requestIds = async (): Promise<string[]> => (await recorded()).map(({ requestId }) => requestId);
  const rows = async () =>
    (await database.query('SELECT FROM client_requests WHERE client_id = $1', [client.id])).length;

  it('recorded problems are returned unchanged, newest first', async () => {
    problems.record(problem('req_1', { authMethod: 'both' }));
    problems.record(problem('req_2', { step: 'authorize', redirectUri: 'https://app.example/cb' }));
    const [second, first] = await recorded();
    const { clientId: _, ...unchanged } = problem('req_1', { authMethod: 'both' });
    expect(first).to.deep.equal({ ...unchanged, at: new Date(now) });
    expect(second).to.include({ step: 'authorize', redirectUri: 'https://app.example/cb' });
    expect(second).to.not.have.property('authMethod');
  });

  it('recorded problems are written in the background a moment later, and on shutdown', async () => {
    problems.record(problem('req_1'));
    expect(await rows()).to.equal(0);
    await eventually(async () => expect(await rows()).to.equal(1));
    problems.record(problem('req_2'));
    await problems.close();
    expect(await rows()).to.equal(2);
  });

  it('a problem that cannot be recorded is logged; the node continues, and other problems can still be read', async () => {
    const lines: string[] = [];
    const logged = pino({ level: 'warn' }, { write: (line: string) => void lines.push(line) });
    const own = createClientRequests({ ...parts, log: logged });
    own.record(problem('req_1', { cause: undefined as unknown as string }));
    own.record(problem('req_2'));
    expect(await own.groups(client.id)).to.have.lengthOf(1);
    await own.close();
    expect(lines).to.have.lengthOf(1);
    expect(lines.join()).to.contain('TypeError');
  });

  it('frequent problems at one endpoint, and problems caused by strangers, do not displace other problems', async () => {
    const own = { error: 'invalid_scope', isFromClient: true };
    const [token, authorize] = [own, { ...own, step: 'authorize' as const }];
    for (const [index, share] of [token, authorize, {}].entries()) {
      await problems.groups(client.id);
      problems.record(problem(`req_first_${index}`, share));
      now += 60_000;
    }
    for (let number = 0; number < 240; number += 1) {
      problems.record(another(`req_${number}`, { error: 'invalid_redirect_uri' }));
      problems.record(another(`req_a${number}`, authorize));
      if (number % 60 === 58) problems.record(problem(`req_own_${number}`, token));
      if (number % 60 !== 59) continue;
      await problems.groups(client.id);
      now += 60_000;
    }
    const kept = (await requestIds()).filter((id) => /first|own/.test(id));
    expect(kept.reverse()).to.deep.equal(['req_first_0', 'req_own_58', 'req_own_118', 'req_own_178', 'req_own_238']);
    expect(await rows()).to.equal(205);
  });

  it('many repetitions of one problem neither displace other problems nor use up the limit of problems per minute', async () => {
    const refused = (requestId: string, more: Partial<ClientRequest> = {}) =>
      problem(requestId, { step: 'authorize', error: 'invalid_scope', isFromClient: true, ...more });
    for (let number = 0; number < 90; number += 1) {
      problems.record(refused(`req_other_${number}`, { cause: `cause ${number}` }));
      if (number % 45 !== 44) continue;
      await problems.groups(client.id);
      now += 60_000;
    }
    for (let number = 0; number < 220; number += 1) {
      problems.record(refused(`req_${number}`, { scope: `a${number}`, redirectUri: `https://app.example/${number}` }));
      if (number % 110 === 109) problems.record(refused(`req_other_a${number}`, { error: 'invalid_request' }));
      if (number % 10 === 9) await problems.groups(client.id);
      if (number % 110 === 109) now += 60_000;
    }
    const ids = await requestIds();
    expect(ids.filter((id) => id.includes('other'))).to.have.length(92);
    const [latest] = await problems.groups(client.id);
    expect(latest).to.include({ error: 'invalid_request', count: 2 });
    expect(await rows()).to.equal(97);
    expect((await problems.openCounts(client.id)).get(client.id)).to.equal(
      (await problems.groups(client.id)).filter(({ isMended }) => !isMended).length,
    );
  });

  it('only the latest 5 problems with the same unregistered redirect URI are kept', async () => {
    for (let number = 0; number < 21; number += 1) {
      const redirectUri = `https://app.example/${number % 2}`;
      problems.record(problem(`req_${number}`, { step: 'authorize', error: 'invalid_redirect_uri', redirectUri }));
      await problems.groups(client.id);
      now += 60_000;
    }
    expect(await requestIds()).to.deep.equal(Array.from({ length: 10 }, (_, index) => `req_${20 - index}`));
  });

  it('a problem of the previous minute that is recorded late does not reset the limit of the present minute', async () => {
    const late = Promise.withResolvers<void>();
    let wait: Promise<void> | undefined = late.promise;
    const find = async (id: string) => {
      await wait;
      return registry.find(id);
    };
    const slow = createClientRequests({ ...parts, clients: { find } });
    slow.record(another('req_late'));
    now += 60_000;
    wait = undefined;
    const fill = async (name: string) => {
      for (let number = 0; number < 60; number += 1) slow.record(another(`req_${name}_${number}`));
      await new Promise(setImmediate);
    };
    await fill('first');
    await registry.find(client.id);
    late.resolve();
    await slow.groups(client.id);
    await fill('second');
    await slow.close();
    expect((await requestIds()).filter((id) => id !== 'req_late')).to.have.length(60);
  });

  it('at most 2,000 look-ups of made-up client ids wait at the same time', async () => {
    let asked = 0;
    const waiting = Promise.withResolvers<void>();
    const find = async () => {
      asked += 1;
      await waiting.promise;
      return undefined;
    };
    const slow = createClientRequests({ ...parts, clients: { find } });
    for (let number = 0; number < 5_000; number += 1) {
      slow.record(problem('req', { clientId: `gate_ci_${String(number).padStart(22, '0')}` }));
    }
    expect(asked).to.equal(2_000);
    waiting.resolve();
    await slow.close();
  });

  it('problems older than 7 days are not shown, and are deleted', async () => {
    for (const requestId of ['req_1', 'req_2', 'req_3']) problems.record(another(requestId));
    now += 7 * DAY - 1;
    expect((await problems.groups(client.id)).map(({ count }) => count)).to.deep.equal([1, 1, 1]);
    now += 1;
    expect(await problems.groups(client.id)).to.deep.equal([]);
    const removed = await problems.removeExpired(2);
    expect(removed).to.equal(2);
    while ((await problems.removeExpired(1_000)) > 0);
    expect(await rows()).to.equal(0);
  });

  it('at most 60 problems a minute are recorded, so that many refused requests do not fill the table', async () => {
    for (let number = 0; number < 5_000; number += 1) problems.record(another(`req_${number}`));
    expect(await requestIds()).to.have.length(60);
    now += 60_000;
    problems.record(problem('req_later'));
    expect((await requestIds())[0]).to.equal('req_later');
  });

  it('a flood of made-up client ids does not displace the problems of a real client', async () => {
    for (let number = 0; number < 1_200; number += 1) {
      const clientId = `gate_ci_${String(number).padStart(22, '0')}`;
      problems.record(problem(`req_${number}`, { clientId }));
    }
    problems.record(problem('req_real'));
    expect(await requestIds()).to.deep.equal(['req_real']);
  });

  it('recorded problems contain no token, no secret, and no text that cannot be stored', async () => {
    const secret = `gate_cs_${'s'.repeat(43)}`;
    const cause = `\0\uD800 client_secret=${secret} ${'x'.repeat(3_000)}😀`;
    const redirectUri = `https://me:pass@app.example/${secret}?code=gate_ac_1&x=${secret}#token=1\0`;
    problems.record(problem('req_1', { cause, redirectUri }));
    problems.record(problem('req_2', { redirectUri: `a${'😀'.repeat(4_000)}` }));
    const [long, hostile] = await recorded();
    expect(hostile?.redirectUri).to.equal('https://…@app.example/gate_cs_…?code=…&x=…#…');
    expect(hostile?.cause).to.match(/^\uFFFD\uFFFD client_secret=gate_cs_… x+$/);
    expect(hostile?.cause).to.have.length(500);
    expect(long?.redirectUri).to.have.length(2_000);
  });

  it('the recorded problems of a client are deleted with the client', async () => {
    problems.record(problem('req_1'));
    await problems.groups(client.id);
    await database.query('DELETE FROM clients WHERE id = $1', [client.id]);
    expect(await rows()).to.equal(0);
  });

  it('problems of clients during a database outage are lost, but later ones are recorded', async () => {
    let isDown = true;
    const flaky = {
      now: () => database.now(),
      query: <Row extends object>(text: string, values?: readonly unknown[]): Promise<Row[]> =>
        isDown ? Promise.reject(new Error('unavailable')) : database.query<Row>(text, values),
    };
    const fragile = createClientRequests({ ...parts, database: flaky });
    fragile.record(problem('req_1'));
    await fragile.groups(client.id).catch(() => {});
    isDown = false;
    fragile.record(problem('req_2'));
    expect(await requestIds()).to.deep.equal([]);
    await fragile.close();
    expect(await requestIds()).to.deep.equal(['req_2']);
    fragile.record(problem('req_3'));
    expect(await requestIds()).to.deep.equal(['req_2']);
  });
});

describe('the recorded form of a redirect URI', () => {
  const cases: Readonly<Record<string, string>> = {
    'https://app.example/cb': 'https://app.example/cb',
    'https://app.example/cb?': 'https://app.example/cb?',
    'https://app.example/cb?a=1&b=&c&d=x=y?z': 'https://app.example/cb?a=…&b=&…&d=…',
    'https://app.example/cb#': 'https://app.example/cb#…',
    'com.example.app:/cb?a=1': 'com.example.app:/cb?a=…',
    'https://me:secret@app.example/@/': 'https://…@app.example/@/',
    gate_rt_abc: 'gate_rt_…',
    'https://app.example/gate_ci_abc': 'https://app.example/gate_ci_abc',
    '': '',
  };
  it('a redirect URI is recorded with … in place of query values and tokens', () => {
    for (const [uri, shown] of Object.entries(cases)) expect(withoutValues(uri)).to.equal(shown);
  });
});
