/** An end that was answered is recorded, told to every node and done, whatever hangs or dies meanwhile. */
import { expect } from 'chai';
import { Redis } from 'ioredis';
import pg from 'pg';
import { readValue } from '../../src/authorizations/token-formats.ts';
import { keyOf } from '../../src/storage/token-store.ts';
import { eventually } from '../support/eventually.ts';
import { basic, clientCredentials, postForm, revokeCurrent } from '../support/oauth.ts';
import { describeOn, postgresServer, redisServer } from '../support/requirements.ts';
import { startSeeded } from '../support/seeded.ts';
import { startsOn, type TestService } from '../support/service.ts';

describeOn([postgresServer, redisServer], 'an answered end', () => {
  const start = startsOn('postgres+redis');
  const on = startSeeded({ on: 'postgres+redis' });
  let other: TestService;
  let told: { readonly text: string; close(): void };

  before(async () => {
    other = await start({ beside: on.service });
    told = await listenAt(other.issuer);
  });
  after(() => told?.close());

  /** Hears what this node tells resource servers. */
  async function listenAt(issuer: string): Promise<typeof told> {
    const ending = new AbortController();
    const { body } = await fetch(new URL('/oauth/introspect/changes', issuer), {
      headers: { authorization: basic(on.clients.resourceServer) },
      signal: ending.signal,
    });
    const so = { text: '', close: () => ending.abort() };
    const read = async (): Promise<void> => {
      for await (const chunk of body ?? []) so.text += Buffer.from(chunk).toString();
    };
    read().catch(() => {});
    await eventually(() => expect(so.text).to.include(':\n\n'));
    return so;
  }

  const idOf = (token: string): string => readValue(token)?.authorizationId ?? '';
  const isTold = (id: string) => eventually(() => expect(told.text).to.include(`data: ${id}\n\n`));
  /** Forgets what was heard, so that only what is said from now on counts. */
  const listenAnew = () => {
    Object.assign(told, { text: '' });
  };
  const authorizations = (count: number) =>
    Promise.all(Array.from({ length: count }, () => on.partner.tokens(on.clients.confidential)));

  /** Locks the table: no other transaction reads or writes it until the lock is released. */
  async function lock(table: string): Promise<() => Promise<void>> {
    const { databaseUrl } = on.service.settings.storage;
    const client = new pg.Client({ connectionString: databaseUrl });
    await client.connect();
    await client.query(`BEGIN; LOCK TABLE ${table} IN ACCESS EXCLUSIVE MODE`);
    return () => client.end();
  }

  it('is recorded before it is answered', async () => {
    const [{ accessToken } = { accessToken: '' }] = await authorizations(1);
    expect((await revokeCurrent(on.issuer, accessToken)).status).to.equal(204);
    const found = await on.service.revocations.find(idOf(accessToken));
    expect(found).to.include({ cause: 'client_revoked' });
    await isTold(idOf(accessToken));
  });

  it('does not wait for a table that is locked, nor takes the connections of others: the record follows', async () => {
    const all = await authorizations(30);
    const unlock = await lock('ended_authorizations');
    try {
      const answers = await Promise.all(
        all.map(({ accessToken }) => revokeCurrent(on.issuer, accessToken)),
      );
      expect(answers.map(({ status }) => status)).to.deep.equal(all.map(() => 204));
      for (const { accessToken } of all) {
        const id = idOf(accessToken);
        expect(await other.store.readAuthorization(id)).to.equal(undefined);
        await isTold(id);
      }
    } finally {
      await unlock();
    }
    await eventually(async () => {
      await on.service.revocations.close();
      for (const { accessToken } of all) {
        const found = await on.service.revocations.find(idOf(accessToken));
        expect(found).to.include({ cause: 'client_revoked' });
      }
    });
  });

  it('whose node died before it was done is carried out by another one, and told again', async () => {
    const [first, second] = await authorizations(2);
    const { accessToken: dead = '' } = first ?? {};
    const { accessToken: alive = '' } = second ?? {};
    const authorization = await on.service.store.readAuthorization(idOf(dead));
    if (!authorization) throw new Error('it is not there');
    const why = { cause: 'client_revoked', actor: 'client' } as const;
    const end = { authorization: { id: idOf(dead), ...authorization }, ...why };
    await on.service.revocations.record(end, false);
    expect(await on.partner.isActive(dead)).to.equal(true);
    await isTold(idOf(dead));
    listenAnew();
    // As long as another node has the turn, this one leaves it to that.
    const { revocations } = on.service;
    expect(await revocations.takeTurn('another node')).to.be.instanceOf(Date);
    await other.clean();
    expect(await on.partner.isActive(dead)).to.equal(true);
    await revocations.endTurn('another node');
    await other.clean();
    expect(await on.partner.isActive(dead)).to.equal(false);
    expect(await on.partner.isActive(alive)).to.equal(true);
    await isTold(idOf(dead));
    expect(other.logLines.join('')).to.include('were carried out');
  });

  it('is announced again when the request is repeated, because the first try may have announced nothing', async () => {
    const [{ accessToken } = { accessToken: '' }] = await authorizations(1);
    await on.service.store.endAuthorization(idOf(accessToken));
    const { confidential: client } = on.clients;
    const answer = await postForm(on.issuer, '/oauth/revoke', { token: accessToken }, { client });
    expect(answer.status).to.equal(200);
    await isTold(idOf(accessToken));
  });

  it('of a machine access token stays one in a Redis that lost it', async () => {
    const { machine } = on.clients;
    const { access_token: token } = (await clientCredentials(on.issuer, machine)).body;
    const { redisUrl = '' } = on.service.settings.storage;
    const redis = new Redis(redisUrl);
    try {
      const key = `gh:m:${keyOf(String(token))}`;
      const [value, ttl] = [String(await redis.get(key)), await redis.pttl(key)];
      expect((await revokeCurrent(on.issuer, String(token))).status).to.equal(204);
      await isTold(machine.id);
      await redis.set(key, value, 'PX', ttl);
      expect(await on.partner.isActive(String(token))).to.equal(true);
      await other.clean();
      expect(await on.partner.isActive(String(token))).to.equal(false);
    } finally {
      redis.disconnect();
    }
  });
});
