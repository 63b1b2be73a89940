/** An acknowledged revocation is recorded, announced and carried out despite hangs and crashes. */
import { expect } from 'chai';
import { Redis } from 'ioredis';
import pg from 'pg';
import { readValue } from '../../src/authorizations/token-formats.ts';
import { keyOf } from '../../src/storage/token-store.ts';
import { failureOf } from '../storage/waiting.ts';
import { eventually } from '../support/eventually.ts';
import { basic, clientCredentials, postForm, revokeCurrent } from '../support/oauth.ts';
import { describeOn, postgresServer, redisServer } from '../support/requirements.ts';
import { startSeeded } from '../support/seeded.ts';
import { startsOn, type TestService } from '../support/service.ts';

describeOn([postgresServer, redisServer], 'an acknowledged revocation', () => {
  const start = startsOn('postgres+redis');
  const on = startSeeded({ on: 'postgres+redis' });
  let other: TestService;
  let events: { readonly text: string; close(): void };

  before(async () => {
    other = await start({ sharing: on.service });
    events = await listenAt(other.issuer);
  });
  after(() => events?.close());

  /** Reads the changes that this node streams to resource servers. */
  async function listenAt(issuer: string): Promise<typeof events> {
    const ending = new AbortController();
    const { body } = await fetch(new URL('/oauth/introspect/changes', issuer), {
      headers: { authorization: basic(on.clients.resourceServer) },
      signal: ending.signal,
    });
    const stream = { text: '', close: () => ending.abort() };
    const read = async (): Promise<void> => {
      for await (const chunk of body ?? []) stream.text += Buffer.from(chunk).toString();
    };
    read().catch(() => {});
    await eventually(() => expect(stream.text).to.match(/^:/));
    return stream;
  }

  const idOf = (token: string): string => readValue(token)?.authorizationId ?? '';
  const isSent = (id: string) => eventually(() => expect(events.text).to.include(`data: ${id}\n\n`));
  const clearEvents = () => {
    Object.assign(events, { text: '' });
  };
  const authorizations = (count: number) =>
    Promise.all(Array.from({ length: count }, () => on.partner.tokens(on.clients.confidential)));

  /** Locks the table against reads and writes. @returns a function that releases it. */
  async function lock(table: string): Promise<() => Promise<void>> {
    const { databaseUrl } = on.service.settings.storage;
    const client = new pg.Client({ connectionString: databaseUrl });
    await client.connect();
    await client.query(`BEGIN; LOCK TABLE ${table} IN ACCESS EXCLUSIVE MODE`);
    return () => client.end();
  }

  it('a revocation is recorded before the response is sent', async () => {
    const [{ accessToken } = { accessToken: '' }] = await authorizations(1);
    expect((await revokeCurrent(on.issuer, accessToken)).status).to.equal(204);
    const found = await on.service.revocations.find(idOf(accessToken));
    expect(found).to.include({ cause: 'client_revoked' });
    await isSent(idOf(accessToken));
  });

  it('if a thousand revocations wait for their record, the next one is refused with 503, and recorded later', async () => {
    const { id: clientId } = on.clients.machine;
    const { database, revocations } = on.service;
    const unlock = await lock('ended_machine_tokens');
    // Three of them are written at once.
    const ends = Array.from({ length: 1_004 }, (_, index) =>
      failureOf(revocations.recordOrAnnounce({ machineToken: `gate_mt_${index}`, clientId, expiresAt: 2e9 }, false)),
    );
    try {
      expect(await ends.at(-1)).to.include({ code: 'too_many_waiting', status: 503 });
    } finally {
      await unlock();
    }
    await Promise.all(ends);
    await revocations.close();
    const recorded = await database.query('SELECT FROM ended_machine_tokens WHERE client_id = $1', [clientId]);
    expect(recorded).to.have.length(1_004);
  });

  it('if a table is locked, revocations do not wait, use up no connections, and are recorded later', async () => {
    const all = await authorizations(30);
    const unlock = await lock('ended_authorizations');
    try {
      const answers = await Promise.all(all.map(({ accessToken }) => revokeCurrent(on.issuer, accessToken)));
      expect(answers.map(({ status }) => status)).to.deep.equal(all.map(() => 204));
      for (const { accessToken } of all) {
        const id = idOf(accessToken);
        expect(await other.store.readAuthorization(id)).to.equal(undefined);
        await isSent(id);
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

  it('a revocation is completed and announced again by another node if the node that recorded it crashed', async () => {
    const [first, second] = await authorizations(2);
    const { accessToken: ended = '' } = first ?? {};
    const { accessToken: active = '' } = second ?? {};
    const authorization = await on.service.store.readAuthorization(idOf(ended));
    if (!authorization) throw new Error('the authorization was not found');
    const why = { cause: 'client_revoked', actor: 'client' } as const;
    const end = { authorization: { id: idOf(ended), ...authorization }, ...why };
    await on.service.revocations.record(end, false);
    expect(await on.partner.isActive(ended)).to.equal(true);
    await isSent(idOf(ended));
    clearEvents();
    // This node must not do the work while another node has the turn.
    const { revocations } = on.service;
    expect(await revocations.takeTurn('another node')).to.be.instanceOf(Date);
    await other.clean();
    expect(await on.partner.isActive(ended)).to.equal(true);
    await revocations.endTurn('another node');
    await other.clean();
    expect(await on.partner.isActive(ended)).to.equal(false);
    expect(await on.partner.isActive(active)).to.equal(true);
    await isSent(idOf(ended));
    expect(other.logLines.join('')).to.include('completed ends that a node started');
  });

  it('a repeated revocation is announced again, because the answer to the first attempt may have been lost', async () => {
    const [{ accessToken } = { accessToken: '' }] = await authorizations(1);
    const { confidential: client } = on.clients;
    const revoke = () => postForm(on.issuer, '/oauth/revoke', { token: accessToken }, { client });
    for (const attempt of ['first', 'repeated']) {
      expect((await revoke()).status, attempt).to.equal(200);
      await isSent(idOf(accessToken));
      clearEvents();
    }
  });

  it('the revocation of a machine access token is repeated if Redis lost the deletion of the token', async () => {
    const { machine } = on.clients;
    const { access_token: token } = (await clientCredentials(on.issuer, machine)).body;
    const { redisUrl = '' } = on.service.settings.storage;
    const redis = new Redis(redisUrl);
    try {
      const key = `gh:m:${keyOf(String(token))}`;
      const [value, ttl] = [String(await redis.get(key)), await redis.pttl(key)];
      expect((await revokeCurrent(on.issuer, String(token))).status).to.equal(204);
      await isSent(machine.id);
      await redis.set(key, value, 'PX', ttl);
      expect(await on.partner.isActive(String(token))).to.equal(true);
      await other.clean();
      expect(await on.partner.isActive(String(token))).to.equal(false);
    } finally {
      redis.disconnect();
    }
  });
});
