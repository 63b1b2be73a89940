/** Tests of the promises of a token store, which each implementation has to pass. */
import { expect } from 'chai';
import type { AuthorizationFacts, RecordKind, TokenStore } from '../../src/storage/token-store.ts';
import { createTestClock, type TestClock } from '../support/clock.ts';
import type { StoreUnderTest } from '../support/stores.ts';

export const KINDS: readonly RecordKind[] = ['machine_token', 'session', 'interaction', 'shown_once'];

/** Texts that a store, a driver or a script could mistake for its own syntax. */
const DIFFICULT = {
  text: 'a:b!c"d\\e\'f\n\r\t$1 {}',
  nul: 'a\0b',
  loneSurrogate: '\ud800',
  other: 'größe 倉庫 🏬',
  nested: [{ deep: [null, true, 1.5, ''] }],
};

let drawn = 0;
/** An identifier that no other test uses. */
export function newId(): string {
  drawn += 1;
  return `id_of_this_test_${drawn}`;
}

/** The facts with which an authorization begins. */
export const FACTS: AuthorizationFacts = {
  accountId: 'acc_of_somebody',
  clientId: 'gate_ci_of_some_partner',
  generation: 3,
  secret: 'secret_of_the_record_1',
  redirectUriHash: 'hash_of_a_redirect_uri',
  codeChallengeHash: 'hash_of_code_challenge',
};
const CODE = 600;
const REFRESH = 1_000;
const WINDOW = 60;
/** Seconds that a step may take: the store's clock runs while the test's clock stands still. */
const SLACK = 20;

/** Values that cannot be identifiers. */
const FOREIGN = [
  '',
  'x'.repeat(15),
  'x'.repeat(129),
  'with a space in the middle',
  'nul_at_the_end_1234\0',
  'colon:in:the:middle:1',
  'umlaut_in_the_nämé_1',
  '../../../../../etc/passwd',
];

/** Defines the tests that each implementation has to pass. */
export function tokenStoreContract(open: () => Promise<StoreUnderTest>): void {
  let store: TokenStore;
  let otherNode: TokenStore;
  let anotherNode: StoreUnderTest['anotherNode'];
  let time: TestClock;
  /** Seconds since the epoch. */
  const now = (): number => time.clock() / 1000;

  before(async () => {
    const opened = await open();
    store = opened.store;
    ({ anotherNode } = opened);
    otherNode = await anotherNode();
  });
  beforeEach(() => {
    time = createTestClock();
  });
  afterEach(() => time.restore());

  const begin = async (
    lifetimes: { codeSeconds?: number; absoluteSeconds?: number; clientGeneration?: number } = {},
    facts: AuthorizationFacts = FACTS,
  ): Promise<string> => {
    const id = newId();
    const all = { codeSeconds: CODE, absoluteSeconds: undefined, ...lifetimes };
    await store.beginAuthorization(id, facts, all);
    return id;
  };
  const exchange = async (id: string, attempt = 'mine', node = store): Promise<string> =>
    (await node.exchangeCode(id, { attempt, refreshSeconds: REFRESH })).outcome;
  const rotate = async (
    id: string,
    from: number,
    { attempt = newId(), node = store, retryWindowSeconds = WINDOW, clientGeneration = 0 } = {},
  ): Promise<string> =>
    (await node.rotate(id, { from, attempt, refreshSeconds: REFRESH, retryWindowSeconds, clientGeneration })).outcome;
  const beginExchanged = async (absoluteSeconds?: number): Promise<string> => {
    const id = await begin(absoluteSeconds === undefined ? {} : { absoluteSeconds });
    expect(await exchange(id)).to.equal('issued');
    return id;
  };
  /** Expects that `seconds` is the present time plus `after`, as the store set it while the test clock stands still. */
  const expectNow = (seconds: number | undefined, after = 0): void => {
    expect(seconds).to.be.within(now() + after, now() + after + SLACK);
  };

  it('a record of each kind is read from the token store as it was written, even on another node', async () => {
    const id = newId();
    const expiresAt = now() + 60;
    for (const kind of KINDS) {
      await store.write(kind, id, { kind, ...DIFFICULT }, expiresAt);
    }
    for (const kind of KINDS) {
      const record = { data: { kind, ...DIFFICULT }, expiresAt };
      expect(await store.read(kind, id), kind).to.deep.equal(record);
      expect(await otherNode.read(kind, id), kind).to.deep.equal(record);
      await store.remove(kind, id);
      expect(await otherNode.read(kind, id), kind).to.equal(undefined);
    }
  });

  it('a second write of a record replaces the data and the expiry of the first', async () => {
    const id = newId();
    await store.write('interaction', id, 'first', now() + 10);
    await store.write('interaction', id, 'second', now() + 60);
    time.advance(59);
    expect(await store.read('interaction', id)).to.deep.equal({
      data: 'second',
      expiresAt: now() + 1,
    });
  });

  it('replacing a record changes it if it exists, and does not recreate it after its removal', async () => {
    const id = newId();
    for (const kind of KINDS) {
      expect(await store.replace(kind, id, 'none', now() + 60), kind).to.equal(false);
      await store.write(kind, id, 'first', now() + 60);
      expect(await otherNode.replace(kind, id, DIFFICULT, now() + 90), kind).to.equal(true);
      const record = { data: DIFFICULT, expiresAt: now() + 90 };
      expect(await store.read(kind, id), kind).to.deep.equal(record);
      await otherNode.remove(kind, id);
      expect(await store.replace(kind, id, 'late', now() + 60), kind).to.equal(false);
      expect(await store.read(kind, id), kind).to.equal(undefined);
    }
  });

  it('a record in the token store exists until the second in which it expires', async () => {
    const id = newId();
    for (const kind of KINDS) await store.write(kind, id, 'data', now() + 60);
    await store.writeSession(`${id}s`, `${id}u`, 'session', now() + 60);
    time.advance(59);
    for (const kind of KINDS) expect(await store.read(kind, id), kind).to.include({ data: 'data' });
    expect(await store.readSessionByUid(`${id}u`)).to.include({ data: 'session' });
    time.advance(1);
    expect(await store.readSessionByUid(`${id}u`)).to.equal(undefined);
    for (const kind of KINDS) {
      expect(await store.read(kind, id), kind).to.equal(undefined);
      expect(await store.replace(kind, id, 'data', now() + 60), kind).to.equal(false);
      expect(await store.remove(kind, id), kind).to.equal(false);
      await store.write(kind, id, 'late', now() - 5);
      expect(await store.read(kind, id), kind).to.equal(undefined);
    }
  });

  it('a record can be taken from the store only once, because taking removes it', async () => {
    const id = newId();
    await store.write('shown_once', id, DIFFICULT, now() + 60);
    const taken = await otherNode.take('shown_once', id);
    expect(taken).to.deep.equal({ data: DIFFICULT, expiresAt: now() + 60 });
    expect(await store.take('shown_once', id)).to.equal(undefined);
  });

  it('only the first removal of a record reports that the record existed', async () => {
    const id = newId();
    for (const kind of KINDS) {
      await store.write(kind, id, 'data', now() + 60);
      expect(await store.remove(kind, id), kind).to.equal(true);
      expect(await otherNode.remove(kind, id), kind).to.equal(false);
      expect(await store.remove(kind, newId()), kind).to.equal(false);
    }
  });

  it('a session is found by its uid, even after its identifier changed', async () => {
    const [first, second, uid] = [newId(), newId(), newId()];
    await store.writeSession(first, uid, { of: 'first' }, now() + 60);
    expect(await store.readSessionByUid(uid)).to.deep.equal(await store.read('session', first));
    expect(await store.readSessionByUid(first)).to.equal(undefined);
    await store.remove('session', first);
    expect(await otherNode.readSessionByUid(uid)).to.equal(undefined);
    await store.writeSession(second, uid, { of: 'second' }, now() + 90);
    expect(await otherNode.readSessionByUid(uid)).to.deep.equal({
      data: { of: 'second' },
      expiresAt: now() + 90,
    });
    await store.remove('session', second);
    expect(await store.readSessionByUid(uid)).to.equal(undefined);
  });

  it('replacing a session changes only an existing session, and never recreates a deleted one', async () => {
    const [first, second, uid] = [newId(), newId(), newId()];
    expect(await store.replaceSession(first, uid, {}, now() + 60)).to.equal(false);
    await store.writeSession(first, uid, { of: 'first' }, now() + 60);
    expect(await otherNode.replaceSession(first, uid, { of: 'again' }, now() + 90)).to.equal(true);
    const again = { data: { of: 'again' }, expiresAt: now() + 90 };
    expect(await store.read('session', first)).to.deep.equal(again);
    expect(await store.readSessionByUid(uid)).to.deep.equal(again);

    await store.remove('session', first);
    await store.writeSession(second, uid, { of: 'second' }, now() + 90);
    expect(await otherNode.replaceSession(first, uid, { of: 'first' }, now() + 99)).to.equal(false);
    expect(await store.read('session', first)).to.equal(undefined);
    expect(await store.readSessionByUid(uid)).to.deep.include({ data: { of: 'second' } });
    await store.remove('session', second);
    expect(await store.replaceSession(second, uid, {}, now() + 90)).to.equal(false);
    expect(await otherNode.readSessionByUid(uid)).to.equal(undefined);
  });

  it('an authorization is read from the store as it was created, even on another node', async () => {
    const { codeChallengeHash: _, ...known } = FACTS;
    const full = await otherNode.readAuthorization(await begin({ absoluteSeconds: 5_000, clientGeneration: 7 }));
    const bare = await otherNode.readAuthorization(await begin({}, known));
    for (const [found, facts, ends] of [
      [full, FACTS, true],
      [bare, known, false],
    ] as const) {
      const { approvedAt = 0, usableUntil, rotatedAt, endsAt, ...rest } = found ?? {};
      const clientGeneration = ends ? 7 : 0;
      expect(rest).to.deep.equal({ ...facts, rotation: -1, isConfirmed: false, clientGeneration, sinceRotation: 0 });
      expectNow(approvedAt);
      expect(usableUntil).to.equal(approvedAt + CODE);
      expect(endsAt).to.equal(ends ? approvedAt + 5_000 : undefined);
      expectNow(Math.floor(Number(rotatedAt) / 1000));
    }
    expect(await store.readAuthorization(newId())).to.equal(undefined);
  });

  it('the attempt that exchanged a code can repeat the exchange; any other attempt is a replay', async () => {
    const id = await begin();
    expect(await exchange(id, 'mine')).to.equal('issued');
    expect(await exchange(id, 'mine', otherNode), 'repeated by the same attempt').to.equal('issued');
    expect(await otherNode.readAuthorization(id)).to.include({ rotation: 0, isConfirmed: false });
    const before = await store.readAuthorization(id);
    expect(await exchange(id, 'theirs', otherNode)).to.equal('replayed');
    expect(await store.readAuthorization(id), 'the store leaves the end to its caller').to.deep.equal(before);
    expect(await store.endAuthorization(id)).to.equal(true);
    expect(await exchange(id, 'mine')).to.equal('missing');
    expect(await exchange(newId())).to.equal('missing');
  });

  it('using a code again is a replay, even after a refresh and after the lifetime of the code', async () => {
    const id = await beginExchanged();
    expect(await rotate(id, 0)).to.equal('issued');
    time.advance(CODE + SLACK);
    expect(await exchange(id, 'mine')).to.equal('replayed');
  });

  it('an expired code is reported as expired for an hour, and then as missing', async () => {
    const id = await begin();
    time.advance(CODE - SLACK);
    expect(await exchange(await begin())).to.equal('issued');
    time.advance(SLACK + SLACK);
    expect(await exchange(id)).to.equal('expired');
    expect(await store.readAuthorization(id)).to.include({ rotation: -1 });
    time.advance(3_600);
    expect(await exchange(id)).to.equal('missing');
    expect(await store.readAuthorization(id)).to.equal(undefined);
    expect(await store.endAuthorization(id)).to.equal(false);
  });

  it('exchange and refresh return the time of the store, and until when the new tokens are usable', async () => {
    const id = await begin();
    const step = { attempt: 'a', refreshSeconds: REFRESH };
    const rotation = { ...step, retryWindowSeconds: WINDOW };
    for (const issue of [
      await store.exchangeCode(id, step),
      await store.rotate(id, { ...rotation, from: 0 }),
      await otherNode.rotate(id, { ...rotation, attempt: 'b', from: 0 }),
    ]) {
      if (!('now' in issue)) throw new Error(issue.outcome);
      expectNow(issue.now);
      expectNow(issue.usableUntil, REFRESH);
    }
  });

  it('a refresh replaces the refresh token by a new one, whose lifetime begins at that time', async () => {
    const id = await beginExchanged();
    for (let from = 0; from < 12; from += 1) {
      time.advance(REFRESH - SLACK);
      expect(await rotate(id, from, { node: from % 2 === 0 ? store : otherNode })).to.equal('issued');
      const found = await otherNode.readAuthorization(id);
      expect(found).to.include({ rotation: from + 1, isConfirmed: false });
      expectNow(found?.usableUntil, REFRESH);
      expectNow(Math.floor((found?.rotatedAt ?? 0) / 1000));
    }
  });

  it('the previous refresh token gets the same successor again, and the store does not change', async () => {
    const id = await beginExchanged();
    expect(await rotate(id, 0, { attempt: 'mine' })).to.equal('issued');
    const after = await store.readAuthorization(id);
    expect(await rotate(id, 0, { attempt: 'mine', node: otherNode }), 'repeated by the same attempt').to.equal(
      'issued',
    );
    time.advance(WINDOW - SLACK);
    expect(await rotate(id, 0, { node: otherNode })).to.equal('retried');
    expect(await store.readAuthorization(id)).to.deep.equal(after);
  });

  /** The outcome of presenting the previous refresh token, `after` seconds after the refresh. */
  const PREDECESSORS: readonly {
    readonly title: string;
    readonly after: number;
    readonly isConfirmed?: true;
    readonly retryWindowSeconds?: number;
    readonly outcome: string;
  }[] = [
    {
      title: 'its successor unused, in the retry window',
      after: WINDOW - SLACK,
      outcome: 'retried',
    },
    {
      title: 'its successor used, in the retry window',
      after: 0,
      isConfirmed: true,
      outcome: 'retried',
    },
    { title: 'its successor unused, much later', after: REFRESH - SLACK, outcome: 'retried' },
    {
      title: 'its successor used, after the retry window',
      after: WINDOW + SLACK,
      isConfirmed: true,
      outcome: 'replayed',
    },
    { title: 'with a retry window of 0', after: 0, retryWindowSeconds: 0, outcome: 'replayed' },
    { title: 'its successor expired', after: REFRESH + SLACK, outcome: 'expired' },
  ];
  for (const { title, after, isConfirmed, retryWindowSeconds, outcome } of PREDECESSORS) {
    it(`using the previous refresh token, ${title}, is reported as ${outcome}`, async () => {
      const id = await beginExchanged();
      expect(await rotate(id, 0)).to.equal('issued');
      if (isConfirmed) await otherNode.confirmRotation(id, 1);
      time.advance(after);
      const options = retryWindowSeconds === undefined ? {} : { retryWindowSeconds };
      expect(await rotate(id, 0, { node: otherNode, ...options })).to.equal(outcome);
      expect(await store.readAuthorization(id)).to.include({ rotation: 1 });
    });
  }

  it('a refresh token older than the previous one is immediately treated as a replay', async () => {
    const id = await beginExchanged();
    for (const from of [0, 1]) expect(await rotate(id, from)).to.equal('issued');
    expect(await rotate(id, 0, { node: otherNode })).to.equal('replayed');
    expect(await store.readAuthorization(id)).to.include({ rotation: 2 });
  });

  it('with a retry window of 0, a refresh attempt can be repeated until the next refresh', async () => {
    const id = await beginExchanged();
    const strict = { retryWindowSeconds: 0 };
    expect(await rotate(id, 0, { attempt: 'mine', ...strict })).to.equal('issued');
    const twice = { attempt: 'mine', node: otherNode, ...strict };
    expect(await rotate(id, 0, twice)).to.equal('issued');
    expect(await rotate(id, 1, strict)).to.equal('issued');
    expect(await rotate(id, 0, { attempt: 'mine', ...strict }), 'repeated after a later refresh').to.equal('replayed');
  });

  it('only the current rotation can be confirmed as received, and each new rotation begins unconfirmed', async () => {
    const id = await beginExchanged();
    const isConfirmed = async () => (await otherNode.readAuthorization(id))?.isConfirmed;
    expect(await rotate(id, 0)).to.equal('issued');
    for (const rotation of [0, 2]) await store.confirmRotation(id, rotation);
    expect(await isConfirmed()).to.equal(false);
    await store.confirmRotation(id, 1);
    await otherNode.confirmRotation(id, 1);
    expect(await isConfirmed()).to.equal(true);
    expect(await rotate(id, 1)).to.equal('issued');
    expect(await isConfirmed()).to.equal(false);
    await store.confirmRotation(newId(), 0);
  });

  it("a refresh token newer than the store's record is accepted, and rotation continues from it", async () => {
    const id = await beginExchanged();
    expect(await rotate(id, 7)).to.equal('issued');
    expect(await store.readAuthorization(id)).to.include({ rotation: 8 });
    expect(await rotate(id, 7)).to.equal('retried');
    expect(await rotate(id, 6)).to.equal('replayed');
  });

  it('a refresh token is accepted if the store has lost the exchange of its code, even after the code has expired', async () => {
    const id = await begin();
    time.advance(CODE + SLACK);
    expect(await rotate(id, 0)).to.equal('issued');
    const found = await otherNode.readAuthorization(id);
    expect(found).to.include({ rotation: 1 });
    expectNow(found?.usableUntil, REFRESH);
    expect(await exchange(id)).to.equal('replayed');
    const old = await begin({ absoluteSeconds: CODE });
    time.advance(CODE + SLACK);
    expect(await rotate(old, 0)).to.equal('too_old');
  });

  for (const [what, refreshes, from, rotation] of [
    ['the current token', 2, 2, 3],
    ['an older token', 4, 1, 5],
    ['a token ahead of the record', 2, 6, 7],
  ] as const) {
    it(`after a renewal of the client, the first refresh with ${what} and its retries are accepted`, async () => {
      const id = await beginExchanged();
      for (let done = 0; done < refreshes; done += 1) expect(await rotate(id, done)).to.equal('issued');
      const after = { clientGeneration: 2, retryWindowSeconds: WINDOW, refreshSeconds: REFRESH };
      expect(await otherNode.rotate(id, { ...after, from, attempt: 'first' })).to.include({
        outcome: 'issued',
        rotation,
      });
      expect(await store.rotate(id, { ...after, from, attempt: 'first' })).to.include({ outcome: 'issued', rotation });
      const lifted = await store.readAuthorization(id);
      expect(lifted).to.include({ rotation, clientGeneration: 2, sinceRotation: rotation, isConfirmed: false });
      for (const older of [0, from, rotation - 1]) {
        const retry = await otherNode.rotate(id, { ...after, from: older, attempt: `retry${older}` });
        expect(retry).to.include({ outcome: 'retried', rotation });
      }
      expect(await rotate(id, rotation - 1, { retryWindowSeconds: 0, clientGeneration: 2 })).to.equal('replayed');
      expect(await store.readAuthorization(id)).to.deep.equal(lifted);

      await store.confirmRotation(id, rotation);
      time.advance(WINDOW + SLACK);
      expect(await rotate(id, from, { clientGeneration: 2 }), 'after the retry window').to.equal('replayed');
      expect(await rotate(id, rotation, { clientGeneration: 2 })).to.equal('issued');
      expect(await rotate(id, 0, { clientGeneration: 2 }), 'older than the predecessor').to.equal('replayed');
      expect(await rotate(id, rotation, { clientGeneration: 2 })).to.equal('retried');
      expect(await store.readAuthorization(id)).to.include({ rotation: rotation + 1, sinceRotation: rotation });
    });
  }

  it('a refresh that began before the renewal of its client is refused, and changes nothing', async () => {
    const id = await beginExchanged();
    expect(await rotate(id, 0, { clientGeneration: 1 })).to.equal('issued');
    const before = await store.readAuthorization(id);
    for (const from of [0, 1, 2]) expect(await rotate(id, from, { node: otherNode })).to.equal('renewed');
    expect(await store.readAuthorization(id)).to.deep.equal(before);
    expect(await rotate(id, 1, { clientGeneration: 1 })).to.equal('issued');
  });

  it('after a renewal of the client, expired or too old refresh tokens are still refused', async () => {
    const [expired, old] = [await beginExchanged(), await beginExchanged(100)];
    time.advance(REFRESH + SLACK);
    expect(await rotate(expired, 0, { clientGeneration: 1 })).to.equal('expired');
    expect(await rotate(old, 0, { clientGeneration: 1 })).to.equal('too_old');
  });

  it('an expired refresh token is reported as expired for a day, and then as missing', async () => {
    const id = await beginExchanged();
    time.advance(REFRESH + SLACK);
    expect(await rotate(id, 0)).to.equal('expired');
    time.advance(86_400 - 2 * SLACK);
    expect(await rotate(id, 0, { node: otherNode })).to.equal('expired');
    time.advance(2 * SLACK);
    expect(await rotate(id, 0)).to.equal('missing');
    expect(await store.readAuthorization(id)).to.equal(undefined);
  });

  it('no code or refresh token is usable beyond the absolute age of its authorization', async () => {
    const id = await beginExchanged(REFRESH + 100);
    time.advance(REFRESH - SLACK);
    const step = { attempt: 'a', refreshSeconds: REFRESH, retryWindowSeconds: WINDOW };
    const issue = await store.rotate(id, { ...step, from: 0 });
    const { approvedAt = 0, endsAt } = (await store.readAuthorization(id)) ?? {};
    expect(endsAt).to.equal(approvedAt + REFRESH + 100);
    expect(issue).to.include({ outcome: 'issued', usableUntil: endsAt });
    time.advance(100 + SLACK + SLACK);
    for (const from of [0, 1]) expect(await rotate(id, from)).to.equal('too_old');
  });

  it('an authorization is ended once, and stays ended', async () => {
    const id = await beginExchanged();
    expect(await store.endAuthorization(id)).to.equal(true);
    expect(await otherNode.endAuthorization(id)).to.equal(false);
    expect(await otherNode.readAuthorization(id)).to.equal(undefined);
    expect(await exchange(id)).to.equal('missing');
    expect(await rotate(id, 0)).to.equal('missing');
    await store.confirmRotation(id, 0);
    expect(await store.readAuthorization(id)).to.equal(undefined);
  });

  it('nodes whose clocks are two minutes wrong share one chain of tokens, and treat no retry as a replay', async () => {
    const nodes = await Promise.all([-120, 0, 120].map((seconds) => anotherNode(seconds)));
    const id = newId();
    const lifetimes = { codeSeconds: CODE, absoluteSeconds: 2 * REFRESH };
    const [late = store, , early = store] = nodes;
    await early.beginAuthorization(id, FACTS, lifetimes);
    expectNow((await store.readAuthorization(id))?.usableUntil, CODE);
    expect(await exchange(id, 'mine', late)).to.equal('issued');
    expectNow((await store.readAuthorization(id))?.usableUntil, REFRESH);
    for (let from = 0; from < 6; from += 1) {
      const [first = store, second = store] = from % 2 === 0 ? [late, early] : [early, late];
      expect(await rotate(id, from, { node: first })).to.equal('issued');
      await first.confirmRotation(id, from + 1);
      expect(await rotate(id, from, { node: second })).to.equal('retried');
      for (const node of nodes) {
        const found = await node.readAuthorization(id);
        expect(found).to.include({ rotation: from + 1 });
        expectNow(found?.usableUntil, REFRESH);
      }
    }
  });

  it('the store accepts only identifiers of 16 to 128 characters of its alphabet', async () => {
    for (const id of ['-_aZ09bY18cX27dW', '_'.repeat(128)]) {
      await store.write('session', id, 'data', now() + 60);
      expect(await store.read('session', id), id).to.include({ data: 'data' });
    }
    for (const id of FOREIGN) expect(await store.read('session', id), id).to.equal(undefined);
  });

  it('the token store answers a ping, and cleaning with a limit of 0 removes nothing', async () => {
    await store.ping();
    expect(await store.removeExpired(0)).to.equal(0);
  });
}

/** Expects that a store answers requests with impossible identifiers even without a connection. */
export async function expectAnswersWithoutConnection(store: TokenStore): Promise<void> {
  const step = { attempt: 'attempt', refreshSeconds: 1 };
  const missing = { outcome: 'missing' };
  for (const id of FOREIGN) {
    for (const kind of KINDS) {
      expect(await store.read(kind, id), id).to.equal(undefined);
      expect(await store.take(kind, id), id).to.equal(undefined);
      expect(await store.remove(kind, id), id).to.equal(false);
      expect(await store.replace(kind, id, 'data', 1), id).to.equal(false);
    }
    expect(await store.readSessionByUid(id), id).to.equal(undefined);
    expect(await store.readAuthorization(id), id).to.equal(undefined);
    expect(await store.exchangeCode(id, step), id).to.deep.equal(missing);
    const rotation = { ...step, from: 0, retryWindowSeconds: 1 };
    expect(await store.rotate(id, rotation), id).to.deep.equal(missing);
    expect(await store.endAuthorization(id), id).to.equal(false);
  }
}
