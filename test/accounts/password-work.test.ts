/** A flood from one account or address delays all others by only about one hash of a password. */
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import {
  createTurns,
  inTurn,
  type PasswordTurn,
  type TakeTurn,
  TooManyPasswords,
} from '../../src/accounts/passwords/work.ts';
import { clientCredentials } from '../support/oauth.ts';
import { createPerson } from '../support/person.ts';
import { startSeeded } from '../support/seeded.ts';

/** Starts work that takes a turn and keeps it until it is released. */
function begin(takeTurn: TakeTurn, turn: PasswordTurn, onStart = () => {}) {
  const { promise, resolve } = Promise.withResolvers<void>();
  const outcome = takeTurn(turn, async () => {
    onStart();
    await promise;
    return 'done';
  }).catch((error: unknown) => {
    if (!(error instanceof TooManyPasswords)) throw error;
    return error.isOwn ? 'too many of its own' : 'too many';
  });
  return { outcome, release: resolve };
}

/** A request of this account, from this address, to hash a password. */
const from = (account: string, address: string, rank: PasswordTurn['rank'] = 'stranger') => ({
  rank,
  email: `${account}@demo.test`,
  address,
});

describe('the queue of password hashes', () => {
  /** Requests all turns while the first one runs. @returns the turns that began, in order. */
  async function orderOf(turns: readonly PasswordTurn[], atOnce = 1, maxWaiting = 100) {
    const takeTurn = createTurns({ atOnce, maxWaiting });
    const started: string[] = [];
    const works = turns.map((turn) =>
      begin(takeTurn, turn, () => started.push(`${turn.email.split('@')[0]} ${turn.address}`)),
    );
    for (const { release } of works) {
      await delay(0);
      release();
    }
    const outcomes = await Promise.all(works.map(({ outcome }) => outcome));
    return { started, outcomes };
  }
  const times = (count: number, turn: (index: number) => PasswordTurn): PasswordTurn[] =>
    Array.from({ length: count }, (_, index) => turn(index));

  const backlogs: Readonly<Record<string, (index: number) => PasswordTurn>> = {
    'one account and one address': () => from('eve', '192.0.2.1'),
    'one account, from many addresses': (index) => from('eve', `192.0.2.${index}`),
    'one address, for many accounts': (index) => from(`eve-${index}`, '192.0.2.1'),
    'one IPv6 network, for many accounts': (index) => from(`eve-${index}`, `2001:db8::${index}`),
    'one account in many spellings': (index) => from(index % 2 ? 'EVE' : '\uFF45ve', `192.0.2.${index}`),
    'one known account': () => from('eve', '192.0.2.1', 'known'),
    'a known account and a stranger': (index) => from('eve', '192.0.2.1', index % 2 ? 'known' : 'stranger'),
  };
  for (const [name, attacker] of Object.entries(backlogs)) {
    for (const rank of ['known', 'stranger'] as const) {
      it(`a ${rank === 'known' ? 'known user' : rank} waits for at most one password hash per queue, despite 60 requests of ${name}`, async () => {
        const newcomer = from('ada', '198.51.100.1', rank);
        const { started, outcomes } = await orderOf([...times(60, attacker), newcomer]);
        // Index 0 is the turn that was running already.
        expect(started.indexOf('ada 198.51.100.1')).to.be.within(1, 3);
        expect(new Set(outcomes)).to.deep.equal(new Set(['done']));
      });
    }
  }

  /** A queue whose callers each have an address of their own, and the names of those whose turn has begun. */
  function queueOf(atOnce: number, maxWaiting: number) {
    const takeTurn = createTurns({ atOnce, maxWaiting });
    const started: string[] = [];
    return {
      started,
      ask: (account: string, turn: PasswordTurn = from(account, account)) =>
        begin(takeTurn, turn, () => started.push(account)),
      /** Ends all these turns. @returns the outcomes */
      pass(works: readonly ReturnType<typeof begin>[]): Promise<unknown[]> {
        for (const { release } of works) release();
        return Promise.all(works.map(({ outcome }) => outcome));
      },
    };
  }

  it('the queue of password hashes serves every waiting caller once before any caller a second time', async () => {
    const { ask, pass, started } = queueOf(1, 10);
    await pass(['eve', 'eve', 'ada', 'eve', 'bob'].map((account) => ask(account)));
    expect(started).to.deep.equal(['eve', 'ada', 'bob', 'eve', 'eve']);
  });

  it('the queue forgets a served caller after a thousand others, so that its memory stays bounded', async () => {
    const { ask, pass, started } = queueOf(1, 10);
    await pass([ask('eve')]);
    for (let other = 0; other < 1_000; other += 1) await pass([ask(`other-${other}`)]);
    await pass(['zoe', 'eve', 'ada'].map((account) => ask(account)));
    expect(started.slice(-3)).to.deep.equal(['zoe', 'eve', 'ada']);
  });

  it('the queue of password hashes serves known users and strangers in turn, each group in order of arrival', async () => {
    const crowd = (rank: 'known' | 'stranger') =>
      times(3, (index) => from(`${rank}-${index}`, `192.0.2.${rank.length}${index}`, rank));
    const { started } = await orderOf([...crowd('stranger'), ...crowd('known')]);
    expect(started.map((name) => name.split(' ')[0])).to.deep.equal([
      'stranger-0',
      'known-0',
      'stranger-1',
      'known-1',
      'stranger-2',
      'known-2',
    ]);
  });

  it('only one password hash per account runs at a time; several accounts can use all allowed hashes', async () => {
    const { ask, pass, started } = queueOf(3, 100);
    const turns = times(6, (index) => from('eve', `192.0.2.${index}`, index % 2 ? 'known' : 'stranger'));
    const works = [...turns.map((turn) => ask('eve', turn)), ask('ada'), ask('bob'), ask('joe')];
    await delay(0);
    expect(started).to.deep.equal(['eve', 'ada', 'bob']);
    await pass(works);
    expect(started).to.have.length(9);
  });

  it('a full password hashing queue refuses the last request of the caller with the most requests, and says why', async () => {
    const crowd = times(6, () => from('eve', '192.0.2.1'));
    const newcomers = times(5, (index) => from(`new-${index}`, `198.51.100.${index}`));
    // One request of Eve runs, and at most four requests may wait.
    const { outcomes } = await orderOf([...crowd, ...newcomers], 1, 4);
    const own = 'too many of its own';
    expect(outcomes.slice(0, 6)).to.deep.equal(['done', own, own, own, own, own]);
    // If each waiting caller has only one request, the caller that came last has to retry.
    expect(outcomes.slice(6)).to.deep.equal(['done', 'done', 'done', 'done', 'too many']);
  });

  it('a caller with only one request in a full queue is not refused for sending too many', async () => {
    const { ask, pass } = queueOf(1, 2);
    await pass([ask('ada')]);
    const crowd = ['c-1', 'c-2', 'c-3'].map((account) => ask(account));
    expect(await ask('ada').outcome).to.equal('too many');
    await pass(crowd);
  });

  it('a refused request does not move its account further back in the queue', async () => {
    const { ask, pass } = queueOf(1, 2);
    const works = times(50, () => from('eve', '192.0.2.1')).map((turn) => ask('eve', turn));
    const [ada, bob] = [ask('ada', from('ada', '192.0.2.1')), ask('bob')];
    const outcomes = pass(works);
    // Ada has Eve's address. When Bob's request arrived, Ada's was the latest from that address.
    expect(await pass([ada, bob])).to.deep.equal(['too many of its own', 'done']);
    expect((await outcomes).filter((one) => one === 'done')).to.have.length(2);
    expect(await pass([ask('eve', from('eve', '192.0.2.1'))])).to.deep.equal(['done']);
  });

  it('the next password is hashed even if hashing the previous one failed', async () => {
    const takeTurn = createTurns({ atOnce: 1, maxWaiting: 10 });
    const failing = times(5, () => from('eve', '192.0.2.1')).map((turn) =>
      takeTurn(turn, () => Promise.reject(new Error('no'))).catch(() => 'failed'),
    );
    expect(await Promise.all(failing)).to.deep.equal(Array(5).fill('failed'));
    expect(await takeTurn(from('eve', '192.0.2.1'), async () => 'done')).to.equal('done');
  });
});

describe('a flood of waiting password hashes does not delay clients', () => {
  // A refused attempt does not count as a guess: if it did, the sign-in below would be refused.
  const on = startSeeded({ settings: { limits: { signInFailures: 1 } } });
  const NEW_PASSWORD = 'eight blue pallets, stacked';

  /** Requests more hashes than both queues together can hold. */
  const crowd = (turn: (index: number) => PasswordTurn) =>
    (['stranger', 'known'] as const).flatMap((rank) =>
      Array.from({ length: 110 }, (_, index) => begin(inTurn, { ...turn(index), rank })),
    );

  const own = 'Too much is being tried at once, for this account or from your network.';
  const crowds: readonly (readonly [name: string, (index: number) => PasswordTurn, status: number, words: string])[] = [
    [
      'many accounts',
      (index) => from(`c-${index}`, `10.0.0.${index}`),
      503,
      'Many people are signing in at this moment.',
    ],
    ['one account', (index) => from('pat', `10.0.0.${index}`), 429, own],
    ['one address', (index) => from(`c-${index}`, '127.0.0.1'), 429, own],
  ];
  for (const [name, turn, status, words] of crowds) {
    it(`while many password hashes of ${name} wait, sign-ins and links get Retry-After, and clients do not wait`, async () => {
      const account =
        (await on.service.accounts.findByEmail('pat@demo.test')) ??
        (await on.service.accounts.add({ email: 'pat@demo.test', name: 'Pat' }));
      const { token } = await on.service.passwordLinks.make(account, 'forgotten', 'operator');
      const browser = createPerson(on.issuer);
      const link = await browser.open(`/password?token=${token}`);
      const waiting = crowd(turn);
      try {
        const fields = { email: account.email, password: 'seven red forklifts' };
        const answers = [
          await browser.submit(await browser.get('/login'), fields),
          await browser.submit(link, { new_password: NEW_PASSWORD }),
        ];
        for (const answer of answers) {
          expect(answer.status).to.equal(status);
          expect(answer.headers.get('retry-after')).to.equal('5');
          expect(answer.html).to.include(words);
        }
        expect((await clientCredentials(on.issuer, on.clients.machine)).status).to.equal(200);
      } finally {
        for (const { release } of waiting) release();
        await Promise.all(waiting.map(({ outcome }) => outcome));
      }
      expect((await browser.submit(link, { new_password: NEW_PASSWORD })).status).to.equal(303);
      const signedIn = await createPerson(on.issuer).signIn({
        email: account.email,
        password: NEW_PASSWORD,
      });
      expect(signedIn.url.pathname).to.equal('/profile');
    });
  }
});
