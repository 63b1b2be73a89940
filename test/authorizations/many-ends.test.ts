/** Users and clients with more single ends than are read with them: each id is asked for once. */
import { expect } from 'chai';
import { createPeople, type People } from '../../src/accounts/access/people.ts';
import { createActivity } from '../../src/accounts/activity/activity.ts';
import { createEndings } from '../../src/authorizations/endings.ts';
import { createRevocations, type End } from '../../src/authorizations/revocations.ts';
import { readValue } from '../../src/authorizations/token-formats.ts';
import { systemClock } from '../../src/base/clock.ts';
import { newValue } from '../../src/base/random-id.ts';
import { type ClientRegistry, createClientRegistry } from '../../src/clients/client-registry.ts';
import { type ChangeFeed, listenForChanges, sendToAllNodes } from '../../src/storage/change-feed.ts';
import { type OpenDatabase, openDatabase } from '../../src/storage/database.ts';
import { keyOf } from '../../src/storage/token-store.ts';
import { newId } from '../storage/token-store-contract.ts';
import { createAccounts } from '../support/accounts.ts';
import { eventually } from '../support/eventually.ts';
import { revokeCurrent } from '../support/oauth.ts';
import { createOpened } from '../support/opened.ts';
import { freshMigratedDatabaseUrl } from '../support/postgres-server.ts';
import { describeOn, postgresServer } from '../support/requirements.ts';
import { startSeeded } from '../support/seeded.ts';
import { TIMEOUT_FACTOR } from '../support/timeout-factor.ts';

const COUNT = 150;
const DAY = 86_400;

/** Ids of one owner: `end` ends one, `hasEnded` asks whether it has ended. */
interface Kind {
  readonly byPrimaryKey: RegExp;
  makeId(): string;
  end(id: string): Promise<void>;
  hasEnded(id: string): Promise<boolean>;
}

describeOn([postgresServer], 'a user or client with many single ends', () => {
  const opened = createOpened();
  after(opened.closeAll);
  let changes: ChangeFeed;
  let database: OpenDatabase;
  let people: People;
  let clients: ClientRegistry;
  let kinds: Readonly<Record<'authorization' | 'machine token', Kind>>;
  let statements: string[] = [];
  let answers = 0;
  /** Until this is resolved, the answer of each statement that was sent waits. */
  let isReleased: Promise<void> = Promise.resolve();
  const received = new Set<string>();

  before(async () => {
    const options = { databaseUrl: await freshMigratedDatabaseUrl(), dataDirectory: '', timeoutFactor: TIMEOUT_FACTOR };
    database = await opened.add(openDatabase(options), (one) => one.close());
    changes = await opened.add(listenForChanges(database, TIMEOUT_FACTOR), (feed) => feed.close());
    changes.onMessage((text) => received.add(text));
    const query: OpenDatabase['query'] = async (text, ...rest) => {
      statements.push(text);
      const found = await database.query(text, ...rest);
      answers += 1;
      await isReleased;
      return found as never;
    };
    const parts = { database: { ...database, query }, changes, clock: systemClock };
    people = createPeople(parts);
    clients = createClientRegistry(parts);
    const account = await createAccounts({ ...parts, database }).add({ email: 'a@demo.test', name: 'Ada' });
    const { client } = await clients.add({ kind: 'machine', name: 'Robot', redirectUris: [], isNative: false });
    const [accountId, clientId] = [account.id, client.id];
    const revocations = createRevocations({ database, activity: createActivity({ ...parts }) });
    const store = { isInDatabase: false, remove: async () => true, endAuthorization: async () => true };
    const endings = createEndings({ store: store as never, revocations, changes });
    const [generation, usableUntil] = [1, Math.floor(Date.now() / 1_000) + DAY];
    const endOf = (id: string): End => {
      const authorization = { id, accountId, clientId, generation, usableUntil };
      return { authorization, cause: 'client_revoked', actor: 'client' };
    };
    kinds = {
      authorization: {
        byPrimaryKey: /^SELECT 1 FROM ended_authorizations WHERE id = \$1$/,
        makeId: newId,
        end: (id) => endings.end(endOf(id)),
        async hasEnded(id) {
          const person = await people.find(accountId);
          if (!person) throw new Error('the user was not found');
          return people.hasEnded(person, id);
        },
      },
      'machine token': {
        byPrimaryKey: /^SELECT 1 FROM ended_machine_tokens WHERE client_id = \$1 AND key = \$2$/,
        makeId: () => newValue('machine_token'),
        end: (machineToken) => endings.end({ machineToken, clientId, expiresAt: usableUntil }),
        async hasEnded(machineToken) {
          const found = await clients.find(clientId);
          if (!found) throw new Error('the client was not found');
          return clients.hasEndedToken(found, keyOf(machineToken));
        },
      },
    };
  });

  /** Waits until this node has received every notification of the earlier statements. */
  async function untilHeard(): Promise<void> {
    const marker = newId();
    await sendToAllNodes(database, marker);
    await eventually(() => expect(received.has(marker)).to.equal(true));
  }

  for (const name of ['authorization', 'machine token'] as const) {
    it(`${name}: each of ${COUNT} ended ids is refused, by one statement for each id and none for a repetition`, async () => {
      const { byPrimaryKey, makeId, end, hasEnded } = kinds[name];
      const [ended, active] = [Array.from({ length: COUNT }, makeId), [makeId(), makeId()]];
      for (const id of ended) await end(id);
      await untilHeard();
      await hasEnded(makeId());
      for (const sent of [COUNT + 2, 0]) {
        statements = [];
        for (const id of ended) expect(await hasEnded(id)).to.equal(true);
        for (const id of active) expect(await hasEnded(id)).to.equal(false);
        expect(statements).to.have.length(sent);
        for (const statement of statements) expect(statement).to.match(byPrimaryKey);
      }
      const [first = '', second = ''] = active;
      await end(first);
      expect([await hasEnded(first), await hasEnded(second)]).to.deep.equal([true, false]);
    });

    it(`${name}: an answer that was read before an end is not used after it`, async () => {
      const { makeId, end, hasEnded } = kinds[name];
      const id = makeId();
      await untilHeard();
      await hasEnded(makeId());
      const { promise, resolve } = Promise.withResolvers<void>();
      isReleased = promise;
      answers = 0;
      const early = hasEnded(id);
      try {
        await eventually(() => expect(answers).to.equal(1));
        await end(id);
      } finally {
        resolve();
      }
      expect(await early).to.equal(false);
      expect(await hasEnded(id)).to.equal(true);
    });
  }
});

describe('the record of a single end', () => {
  const on = startSeeded({ clock: true, settings: { activity: { retentionSeconds: DAY } } });

  it('an end is kept as long as the longest refresh token that any node may have issued, since lowered or not', async () => {
    const { service, clock } = on;
    const { settings } = service;
    const withLifetime = (refreshTokenSeconds: number) => ({
      ...settings,
      tokens: { ...settings.tokens, refreshTokenSeconds },
    });
    const longer = settings.tokens.refreshTokenSeconds + 10 * DAY;
    await service.apply(withLifetime(longer));
    await service.apply(withLifetime(3_600));
    try {
      const { accessToken } = await on.partner.tokens(on.clients.confidential);
      const id = String(readValue(accessToken)?.authorizationId);
      expect((await revokeCurrent(on.issuer, accessToken)).status).to.equal(204);
      clock.advance(longer + 2 * DAY - 3_600);
      await service.clean();
      expect(await service.revocations.find(id), 'an older copy of Redis may have such a record').to.be.ok;
      clock.advance(2 * 3_600);
      await service.clean();
      expect(await service.revocations.find(id)).to.equal(undefined);
    } finally {
      await service.apply(settings);
    }
  });

  it('entries of the activity are kept as long as the operator has chosen', async () => {
    const { service, clock, seeded } = on;
    const { accountId } = seeded.person;
    const entries = async () => (await service.activity.of(accountId, { limit: 100 })).length;
    await on.partner.tokens(on.clients.confidential);
    const kept = await entries();
    expect(kept).to.be.above(0);
    clock.advance(DAY - 3_600);
    await service.clean();
    expect(await entries()).to.equal(kept);
    clock.advance(2 * 3_600);
    await service.clean();
    expect(await entries()).to.equal(0);
  });
});
