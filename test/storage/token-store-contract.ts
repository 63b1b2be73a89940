/** The promises of a token store, as tests that each implementation has to pass. */
import { expect } from 'chai';
import type { RecordKind, TokenStore } from '../../src/storage/token-store.ts';
import { createTestClock, type TestClock } from '../support/clock.ts';
import type { StoreUnderTest } from '../support/stores.ts';

export const KINDS: readonly RecordKind[] = [
  'access_token',
  'machine_token',
  'code',
  'grant',
  'session',
  'interaction',
];

/** Everything that a store, a driver or a script could take for a sign of its own. */
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

/** What no identifier of ours can be. */
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

/** Defines the tests of every promise that each implementation keeps. */
export function tokenStoreContract(open: () => Promise<StoreUnderTest>): void {
  let store: TokenStore;
  let otherNode: TokenStore;
  let time: TestClock;
  /** Seconds since the epoch. */
  const now = (): number => time.clock() / 1000;

  before(async () => {
    const opened = await open();
    store = opened.store;
    otherNode = await opened.anotherNode();
  });
  beforeEach(() => {
    time = createTestClock();
  });
  afterEach(() => time.restore());

  const startFamily = async (grantId: string, lifetime = 100): Promise<void> => {
    await store.startFamily(grantId, { of: 'rotation 0' }, time.clock(), now() + lifetime);
  };
  const stepTo = (rotation: number, attempt: string) => ({
    rotation,
    attempt,
    data: { of: `rotation ${rotation}` },
    now: time.clock(),
    expiresAt: now() + 200,
  });

  it('two records are read together, each by its own kind and id', async () => {
    const [id, other] = [newId(), newId()];
    await store.write('access_token', id, { of: 'token' }, now() + 60);
    await store.write('grant', other, { of: 'grant' }, now() + 30);
    await store.write('grant', id, { of: 'another grant' }, now() + 60);
    const together = () =>
      otherNode.readBoth({ kind: 'access_token', id }, { kind: 'grant', id: other });
    expect(await together()).to.deep.equal([
      { data: { of: 'token' }, expiresAt: now() + 60, isConsumed: false },
      { data: { of: 'grant' }, expiresAt: now() + 30, isConsumed: false },
    ]);
    expect(
      await store.readBoth({ kind: 'code', id }, { kind: 'grant', id: other }),
    ).to.have.property('0', undefined);
    for (const foreign of FOREIGN) {
      const found = await store.readBoth({ kind: 'code', id: foreign }, { kind: 'grant', id });
      expect(found[0], foreign).to.equal(undefined);
      expect(found[1]?.data).to.deep.equal({ of: 'another grant' });
    }
    time.advance(30);
    expect((await together()).map((record) => record?.data)).to.deep.equal([
      { of: 'token' },
      undefined,
    ]);
    await store.remove('access_token', id);
    expect(await together()).to.deep.equal([undefined, undefined]);
  });

  it('a record of each kind is read as it was written, on another node too', async () => {
    const id = newId();
    const expiresAt = now() + 60;
    for (const kind of KINDS) {
      await store.write(kind, id, { kind, ...DIFFICULT }, expiresAt);
    }
    for (const kind of KINDS) {
      const record = { data: { kind, ...DIFFICULT }, expiresAt, isConsumed: false };
      expect(await store.read(kind, id), kind).to.deep.equal(record);
      expect(await otherNode.read(kind, id), kind).to.deep.equal(record);
      await store.remove(kind, id);
      expect(await otherNode.read(kind, id), kind).to.equal(undefined);
    }
  });

  it('a second write replaces the data, the expiry and the mark of the first', async () => {
    const id = newId();
    await store.write('code', id, 'first', now() + 10);
    await store.consumeCode(id, 'attempt');
    await store.write('code', id, 'second', now() + 60);
    time.advance(59);
    const record = { data: 'second', expiresAt: now() + 1, isConsumed: false };
    expect(await store.read('code', id)).to.deep.equal(record);
  });

  it('a record is replaced while it is there, and does not come back when it is gone', async () => {
    const id = newId();
    for (const kind of KINDS) {
      expect(await store.replace(kind, id, 'none', now() + 60), kind).to.equal(false);
      await store.write(kind, id, 'first', now() + 60);
      expect(await otherNode.replace(kind, id, DIFFICULT, now() + 90), kind).to.equal(true);
      const record = { data: DIFFICULT, expiresAt: now() + 90, isConsumed: false };
      expect(await store.read(kind, id), kind).to.deep.equal(record);
      await otherNode.remove(kind, id);
      expect(await store.replace(kind, id, 'late', now() + 60), kind).to.equal(false);
      expect(await store.read(kind, id), kind).to.equal(undefined);
    }
  });

  it('a record is there until the second of its expiry, and never from it on', async () => {
    const id = newId();
    for (const kind of KINDS) await store.write(kind, id, 'data', now() + 60);
    await store.writeSession(`${id}s`, `${id}u`, 'session', now() + 60);
    await startFamily(id, 60);
    time.advance(59);
    for (const kind of KINDS) expect(await store.read(kind, id), kind).to.include({ data: 'data' });
    expect(await store.readSessionByUid(`${id}u`)).to.include({ data: 'session' });
    expect(await store.readFamily(id)).to.include({ rotation: 0 });
    time.advance(1);
    for (const kind of KINDS) expect(await store.read(kind, id), kind).to.equal(undefined);
    expect(await store.readSessionByUid(`${id}u`)).to.equal(undefined);
    expect(await store.readFamily(id)).to.equal(undefined);
  });

  it('what has expired is neither consumed, replaced, advanced, nor there to be removed', async () => {
    const id = newId();
    await store.write('code', id, 'data', now() + 60);
    await startFamily(id, 60);
    time.advance(60);
    expect(await store.consumeCode(id, 'attempt')).to.equal(false);
    expect(await store.replace('code', id, 'data', now() + 60)).to.equal(false);
    expect(await store.read('code', id)).to.equal(undefined);
    expect(await store.advanceFamily(id, stepTo(1, 'attempt'))).to.equal('missing');
    expect(await store.readFamily(id)).to.equal(undefined);
    expect(await store.remove('code', id)).to.equal(false);
  });

  it('what is written after its expiry is not kept', async () => {
    const id = newId();
    await store.write('grant', id, 'late', now() - 5);
    expect(await store.read('grant', id)).to.equal(undefined);
  });

  it('only the first removal says that there was something', async () => {
    const id = newId();
    for (const kind of KINDS) {
      await store.write(kind, id, 'data', now() + 60);
      expect(await store.remove(kind, id), kind).to.equal(true);
      expect(await otherNode.remove(kind, id), kind).to.equal(false);
      expect(await store.remove(kind, newId()), kind).to.equal(false);
    }
  });

  it('a code is consumed by one attempt, however often that one asks', async () => {
    const id = newId();
    await store.write('code', id, DIFFICULT, now() + 60);
    expect(await store.consumeCode(id, 'mine')).to.equal(true);
    expect(await otherNode.consumeCode(id, 'mine')).to.equal(true);
    expect(await otherNode.consumeCode(id, 'theirs')).to.equal(false);
    expect(await store.consumeCode(id, 'min')).to.equal(false);
    expect(await store.consumeCode(newId(), 'mine')).to.equal(false);
    const record = { data: DIFFICULT, expiresAt: now() + 60, isConsumed: true };
    expect(await store.read('code', id)).to.deep.equal(record);
  });

  it('a session is found by its uid, also after its identifier was renewed', async () => {
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
      isConsumed: false,
    });
    await store.remove('session', second);
    expect(await store.readSessionByUid(uid)).to.equal(undefined);
  });

  it('a family advances, and keeps the data and times of its current rotation', async () => {
    const id = newId();
    const begun = time.clock();
    await startFamily(id);
    const data = { of: 'rotation 0' };
    const expiresAt = begun / 1000 + 100;
    const first = { rotation: 0, rotatedAt: begun, expiresAt, data };
    expect(await otherNode.readFamily(id)).to.deep.equal(first);

    time.advance(90);
    expect(await store.advanceFamily(id, stepTo(1, 'mine'))).to.equal('advanced');
    const second = {
      rotation: 1,
      rotatedAt: time.clock(),
      expiresAt: now() + 200,
      data: { of: 'rotation 1' },
    };
    expect(await otherNode.readFamily(id)).to.deep.equal(second);
    time.advance(30);
    expect(await store.readFamily(id), 'beyond the first expiry').to.deep.equal(second);
  });

  it('a family begins again where it was not advanced yet, and only there', async () => {
    const id = newId();
    await startFamily(id, 50);
    time.advance(5);
    await otherNode.startFamily(id, { of: 'second' }, time.clock(), now() + 100);
    const begun = { rotation: 0, rotatedAt: time.clock(), expiresAt: now() + 100 };
    expect(await store.readFamily(id)).to.deep.equal({ ...begun, data: { of: 'second' } });
    expect(await store.advanceFamily(id, stepTo(1, 'mine'))).to.equal('advanced');
    const advanced = await store.readFamily(id);
    await startFamily(id);
    expect(await store.readFamily(id)).to.deep.equal(advanced);
    expect(await store.advanceFamily(id, stepTo(1, 'mine')), 'of the same attempt').to.equal(
      'advanced',
    );
  });

  it('a rotation is reached once, by the attempt that made it', async () => {
    const id = newId();
    await startFamily(id);
    expect(await store.advanceFamily(id, stepTo(1, 'mine'))).to.equal('advanced');
    const after = await store.readFamily(id);
    time.advance(5);
    expect(await store.advanceFamily(id, stepTo(1, 'mine')), 'sent twice').to.equal('advanced');
    expect(await store.advanceFamily(id, stepTo(1, 'theirs'))).to.equal('already');
    expect(await store.advanceFamily(id, stepTo(0, 'mine'))).to.equal('already');
    expect(await store.readFamily(id)).to.deep.equal(after);
    // As numbers: as texts, 10 would come before 9.
    expect(await store.advanceFamily(id, stepTo(9, 'mine'))).to.equal('advanced');
    expect(await store.advanceFamily(id, stepTo(10, 'mine'))).to.equal('advanced');
    expect(await store.advanceFamily(id, stepTo(9, 'mine'))).to.equal('already');
  });

  it('a family that was removed or never begun is missing, and stays so', async () => {
    const id = newId();
    await startFamily(id);
    await otherNode.removeFamily(id);
    await store.removeFamily(id);
    expect(await store.advanceFamily(id, stepTo(1, 'mine'))).to.equal('missing');
    expect(await store.readFamily(id)).to.equal(undefined);
    expect(await store.advanceFamily(newId(), stepTo(1, 'mine'))).to.equal('missing');
  });

  it('an identifier has 16 to 128 characters of its alphabet', async () => {
    for (const id of ['-_aZ09bY18cX27dW', '_'.repeat(128)]) {
      await store.write('grant', id, 'data', now() + 60);
      expect(await store.read('grant', id), id).to.include({ data: 'data' });
    }
    for (const id of FOREIGN) expect(await store.read('grant', id), id).to.equal(undefined);
  });

  it('the store answers when it is asked to', async () => {
    await store.ping();
    expect(await store.removeExpired(0)).to.equal(0);
  });
}

/** What must not cost a query, asked of a store whose connection is closed. */
export async function expectAnswersWithoutConnection(store: TokenStore): Promise<void> {
  const step = { rotation: 1, attempt: 'a', data: {}, now: Date.now(), expiresAt: 1 };
  for (const id of FOREIGN) {
    for (const kind of KINDS) {
      expect(await store.read(kind, id), id).to.equal(undefined);
      expect(await store.remove(kind, id), id).to.equal(false);
      expect(await store.replace(kind, id, 'data', 1), id).to.equal(false);
    }
    expect(await store.readSessionByUid(id), id).to.equal(undefined);
    expect(await store.readFamily(id), id).to.equal(undefined);
    expect(await store.consumeCode(id, 'attempt'), id).to.equal(false);
    expect(await store.advanceFamily(id, step), id).to.equal('missing');
    await store.removeFamily(id);
  }
}
