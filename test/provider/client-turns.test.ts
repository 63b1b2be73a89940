/** A node works on a few requests of a client at once, however many the client sends: others do not wait for them. */
import { EventEmitter } from 'node:events';
import { expect } from 'chai';
import type { Context } from 'koa';
import pg from 'pg';
import type { Client } from '../../src/clients/client.ts';
import { createClientTurns } from '../../src/provider/client-turns.ts';
import { eventually } from '../support/eventually.ts';
import { type Answer, exchangeCode, introspect, refresh } from '../support/oauth.ts';
import { describeOn, postgresServer } from '../support/requirements.ts';
import { startSeeded } from '../support/seeded.ts';
import { startsOn } from '../support/service.ts';

const AT_ONCE = 8;
const IN_PROGRESS = 'earlier requests of this client are still in progress: repeat this one, or send fewer at a time';

/** Lets no token request finish until `release`: it waits to write its authorization, while others read. */
async function holdWrites(connectionString: string | undefined) {
  const client = new pg.Client({ connectionString });
  await client.connect();
  await client.query('BEGIN; LOCK TABLE authorizations IN EXCLUSIVE MODE');
  return {
    /** Waits until exactly so many token requests are in progress. */
    expectInProgress: (count: number) =>
      eventually(async () => {
        const { rowCount } = await client.query("SELECT FROM pg_locks WHERE NOT granted AND mode = 'RowExclusiveLock'");
        expect(rowCount).to.equal(count);
      }),
    release: () => client.end(),
  };
}

describeOn([postgresServer], 'many requests of one client at once', () => {
  const start = startsOn('postgres');
  const on = startSeeded({ on: start });
  const hold = () => holdWrites(on.service.settings.storage.databaseUrl);
  const statuses = async (answers: readonly Promise<Answer>[]) =>
    (await Promise.all(answers)).map(({ status }) => status);
  const times = (count: number, status: number): number[] => Array<number>(count).fill(status);

  /** Resolves when the requests sent before have arrived: later ones are answered. */
  async function untilArrived(issuer = on.issuer): Promise<void> {
    for (let times = 0; times < 5; times += 1) await introspect(issuer, on.clients.resourceServer, 'x');
  }

  /** Sends a request of the confidential client, and disconnects when it has arrived. */
  async function sendAndLeave(place: string, fields: Readonly<Record<string, string>>): Promise<void> {
    const { id, secret = '' } = on.clients.confidential;
    const abort = new AbortController();
    const body = new URLSearchParams({ ...fields, client_id: id, client_secret: secret });
    const leaving = fetch(new URL(place, on.issuer), { method: 'POST', body, signal: abort.signal });
    await untilArrived();
    abort.abort();
    expect(await leaving.catch(({ name }: Error) => name)).to.equal('AbortError');
  }

  /** Sends correct requests of the confidential client. */
  async function flood(count: number) {
    const { refreshToken } = await on.partner.tokens(on.clients.confidential);
    return {
      begin: () => Array.from({ length: count }, () => refresh(on.issuer, on.clients.confidential, refreshToken)),
    };
  }

  it('only a few requests of a client run at once; other clients need not wait, and every request succeeds', async () => {
    const { otherConfidential } = on.clients;
    const theirs = await on.partner.tokens(otherConfidential);
    const { begin } = await flood(40);
    const { expectInProgress, release } = await hold();
    let answered = 0;
    const answers = begin().map((answer) => answer.finally(() => (answered += 1)));
    await expectInProgress(AT_ONCE);
    const { status, body } = await introspect(on.issuer, otherConfidential, theirs.accessToken);
    expect([status, body.active, answered]).to.deep.equal([200, true, 0]);
    const other = refresh(on.issuer, otherConfidential, theirs.refreshToken);
    await expectInProgress(AT_ONCE + 1);
    await release();
    expect(await statuses([...answers, other])).to.deep.equal(times(41, 200));
  });

  it('a waiting request whose caller disconnects is removed from the queue, and consumes nothing', async () => {
    const { confidential } = on.clients;
    const code = await on.partner.code(confidential);
    const { begin } = await flood(AT_ONCE);
    const { expectInProgress, release } = await hold();
    const answers = begin();
    await expectInProgress(AT_ONCE);
    const form = { grant_type: 'authorization_code', code, redirect_uri: confidential.redirectUri };
    await sendAndLeave('/oauth/token', form);
    const ended = await eventually(() => {
      const line = on.service.logLines.find((one) => one.includes('"status":499'));
      if (line === undefined) throw new Error('it still waits');
      return JSON.parse(line);
    });
    // Not when each waiting request is refused.
    expect(ended.ms).to.be.below(5_000);
    const refusals = on.service.logLines.filter((line) => line.includes('token refused'));
    expect(refusals.filter((line) => line.includes(ended.requestId))).to.deep.equal([]);
    await release();
    expect(await statuses(answers)).to.deep.equal(times(AT_ONCE, 200));
    expect(await statuses([exchangeCode(on.issuer, confidential, code)])).to.deep.equal([200]);
  });

  it('a waiting revocation is carried out even if its caller disconnects', async () => {
    const { confidential } = on.clients;
    const { accessToken: token } = await on.partner.tokens(confidential);
    const { begin } = await flood(AT_ONCE);
    const { expectInProgress, release } = await hold();
    const answers = begin();
    await expectInProgress(AT_ONCE);
    await sendAndLeave('/oauth/revoke', { token });
    await release();
    expect(await statuses(answers)).to.deep.equal(times(AT_ONCE, 200));
    await eventually(async () => expect(await on.partner.isActive(token)).to.equal(false));
  });

  it('a client that is suspended while its request waits is refused', async () => {
    const { confidential } = on.clients;
    const { service } = on;
    const { begin } = await flood(AT_ONCE + 1);
    const { expectInProgress, release } = await hold();
    const answers = begin();
    await expectInProgress(AT_ONCE);
    await service.clients.suspend(confidential.id);
    await release();
    const { id } = confidential;
    const seen = await statuses(answers);
    await service.clients.resume(id);
    expect(seen.filter((status) => status === 401)).to.have.lengthOf(1);
  });

  it('a service that shuts down still answers the waiting requests', async () => {
    const node = await start({ sharing: on.service });
    const { confidential } = on.clients;
    const { refreshToken } = await on.partner.tokens(confidential);
    const { expectInProgress, release } = await hold();
    const answers = Array.from({ length: 3 * AT_ONCE }, () => refresh(node.issuer, confidential, refreshToken));
    await expectInProgress(AT_ONCE);
    await untilArrived(node.issuer);
    const closed = node.close();
    await release();
    expect(await statuses(answers)).to.deep.equal(times(3 * AT_ONCE, 200));
    await closed;
  });
});

describe('the queue for the requests of one client', () => {
  const from = (ip: string): Context => ({ ip, res: new EventEmitter() }) as unknown as Context;
  const client = (id: string, kind: Client['kind']): Client => ({ id, kind }) as Client;

  /** Takes so many turns from this address. @returns how many of them have begun, and how to end these */
  function takeTurns(inTurn: ReturnType<typeof createClientTurns>, who: Client, count: number, ip = '192.0.2.1') {
    const { promise, resolve } = Promise.withResolvers<void>();
    let begun = 0;
    const work = (): Promise<void> => {
      begun += 1;
      return promise;
    };
    const answers = Array.from({ length: count }, () => inTurn(who, from(ip), work));
    return { begun: () => begun, end: resolve, answers: Promise.all(answers) };
  }

  for (const [kind, refusal] of [
    ['confidential', { status: 503, code: 'temporarily_unavailable' }],
    // Anyone can send so many requests with its id, and a status above 499 alerts the operator.
    ['public', { status: 429, code: 'slow_down' }],
  ] as const) {
    it(`if too many requests of a ${kind} client wait, another request is refused as one to retry, with the reason`, async () => {
      const inTurn = createClientTurns();
      const one = client('one', kind);
      const held = takeTurns(inTurn, one, AT_ONCE + 1_000);
      const error = await inTurn(one, from('192.0.2.1'), async () => 'answered').catch((thrown: unknown) => thrown);
      expect(error).to.include({ ...refusal, description: IN_PROGRESS });
      expect(error).to.have.nested.property('headers.Retry-After', '2');
      held.end();
      await held.answers;
      expect(await inTurn(one, from('192.0.2.1'), async () => 'answered')).to.equal('answered');
    });
  }

  it('requests with the id of a public client do not delay requests with the same id from other networks', async () => {
    const inTurn = createClientTurns();
    const app = client('app', 'public');
    const held = takeTurns(inTurn, app, AT_ONCE + 1, '2001:db8::1');
    const neighbours = takeTurns(inTurn, app, 1, '2001:db8::2');
    const others = takeTurns(inTurn, app, 1, '2001:db8:1::1');
    expect([held, neighbours, others].map(({ begun }) => begun())).to.deep.equal([AT_ONCE, 0, 1]);
    for (const { end } of [held, neighbours, others]) end();
    await Promise.all([held.answers, neighbours.answers, others.answers]);
  });

  it('a request whose caller disconnected before its turn is not executed, even if no event reports that', async () => {
    const inTurn = createClientTurns();
    const one = client('one', 'confidential');
    const leaver = { ip: '192.0.2.1', res: Object.assign(new EventEmitter(), { destroyed: true }) };
    const isDone: string[] = [];
    const take = (name: string) =>
      inTurn(one, leaver as unknown as Context, async () => isDone.push(name)).catch(({ status }) => status);
    expect(await take('at once')).to.equal(499);
    const held = takeTurns(inTurn, one, AT_ONCE);
    expect(await take('with others before'), 'it does not wait').to.equal(499);
    leaver.res.destroyed = false;
    const waits = take('in its turn');
    leaver.res.destroyed = true;
    held.end();
    await held.answers;
    expect([await waits, ...isDone]).to.deep.equal([499]);
    const next = takeTurns(inTurn, one, AT_ONCE);
    expect(next.begun(), 'every turn is free again').to.equal(AT_ONCE);
    next.end();
  });

  it('a resource server has a larger limit of parallel requests, for all of its addresses together', () => {
    const inTurn = createClientTurns();
    const api = client('api', 'resource-server');
    const [one, other] = ['192.0.2.1', '198.51.100.1'].map((ip) => takeTurns(inTurn, api, 40, ip));
    expect([one?.begun(), other?.begun()]).to.deep.equal([40, 24]);
  });
});
