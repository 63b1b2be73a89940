/** However much one account or one address asks for, everybody else waits for about one turn of it. */
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

/** Work that goes on until it is released. */
function held(takeTurn: TakeTurn, turn: PasswordTurn, onBegin = () => {}) {
  const { promise, resolve } = Promise.withResolvers<void>();
  const outcome = takeTurn(turn, async () => {
    onBegin();
    await promise;
    return 'done';
  }).catch((error: unknown) => {
    if (!(error instanceof TooManyPasswords)) throw error;
    return error.isOwn ? 'too many of its own' : 'too many';
  });
  return { outcome, release: resolve };
}

/** From this account, at this address. */
const by = (account: string, address: string, rank: PasswordTurn['rank'] = 'stranger') => ({
  ...{ rank, email: `${account}@demo.test`, address },
});

describe('the turns of hashing passwords', () => {
  /** Asks for all turns while the first one is under way. @returns who began, in order. */
  async function orderOf(turns: readonly PasswordTurn[], atOnce = 1, maxWaiting = 100) {
    const takeTurn = createTurns({ atOnce, maxWaiting });
    const begun: string[] = [];
    const works = turns.map((turn) =>
      held(takeTurn, turn, () => begun.push(`${turn.email.split('@')[0]} ${turn.address}`)),
    );
    for (const { release } of works) {
      await delay(0);
      release();
    }
    const outcomes = await Promise.all(works.map(({ outcome }) => outcome));
    return { begun, outcomes };
  }
  const times = (count: number, turn: (index: number) => PasswordTurn): PasswordTurn[] =>
    Array.from({ length: count }, (_, index) => turn(index));

  const backlogs: Readonly<Record<string, (index: number) => PasswordTurn>> = {
    'one account and one address': () => by('eve', '192.0.2.1'),
    'one account, from many addresses': (index) => by('eve', `192.0.2.${index}`),
    'one address, for many accounts': (index) => by(`eve-${index}`, '192.0.2.1'),
    'one IPv6 network, for many accounts': (index) => by(`eve-${index}`, `2001:db8::${index}`),
    'one account in many spellings': (index) =>
      by(index % 2 ? 'EVE' : '\uFF45ve', `192.0.2.${index}`),
    'one known account': () => by('eve', '192.0.2.1', 'known'),
    'a known account and a stranger': (index) =>
      by('eve', '192.0.2.1', index % 2 ? 'known' : 'stranger'),
  };
  for (const [name, attacker] of Object.entries(backlogs)) {
    for (const rank of ['known', 'stranger'] as const) {
      it(`a newcomer (${rank}) waits for no more than a turn in each line of ${name}`, async () => {
        const newcomer = by('ada', '198.51.100.1', rank);
        const { begun, outcomes } = await orderOf([...times(60, attacker), newcomer]);
        // Beside the one under way.
        expect(begun.indexOf('ada 198.51.100.1')).to.be.within(1, 3);
        expect(new Set(outcomes)).to.deep.equal(new Set(['done']));
      });
    }
  }

  it('whoever asks again when the last turn is over is no earlier than a newcomer', async () => {
    const takeTurn = createTurns({ atOnce: 1, maxWaiting: 10 });
    const begun: string[] = [];
    const ask = (account: string) =>
      held(takeTurn, by(account, account), () => begun.push(account));
    const first = ask('eve');
    const waiting = ['eve', 'ada', 'eve', 'bob'].map(ask);
    for (const { release } of [first, ...waiting]) release();
    await Promise.all(waiting.map(({ outcome }) => outcome));
    expect(begun).to.deep.equal(['eve', 'ada', 'bob', 'eve', 'eve']);
  });

  it('and once a thousand others had one, that is forgotten: nobody fills the memory with turns', async () => {
    const takeTurn = createTurns({ atOnce: 1, maxWaiting: 10 });
    const begun: string[] = [];
    const ask = (account: string) =>
      held(takeTurn, by(account, account), () => begun.push(account));
    const passAll = (works: readonly ReturnType<typeof ask>[]) => {
      for (const { release } of works) release();
      return Promise.all(works.map(({ outcome }) => outcome));
    };
    await passAll([ask('eve')]);
    for (let other = 0; other < 1_000; other += 1) await passAll([ask(`other-${other}`)]);
    await passAll(['zoe', 'eve', 'ada'].map(ask));
    expect(begun.slice(-3)).to.deep.equal(['zoe', 'eve', 'ada']);
  });

  it('known people and strangers take turns, each in the order in which they came', async () => {
    const crowd = (rank: 'known' | 'stranger') =>
      times(3, (index) => by(`${rank}-${index}`, `192.0.2.${rank.length}${index}`, rank));
    const { begun } = await orderOf([...crowd('stranger'), ...crowd('known')]);
    expect(begun.map((name) => name.split(' ')[0])).to.deep.equal([
      ...['stranger-0', 'known-0', 'stranger-1', 'known-1', 'stranger-2', 'known-2'],
    ]);
  });

  it('of one account one hash is under way, of several as many as there may be', async () => {
    const takeTurn = createTurns({ atOnce: 3, maxWaiting: 100 });
    const begun: string[] = [];
    const ask = (turn: PasswordTurn) =>
      held(takeTurn, turn, () => begun.push(turn.email.split('@')[0] ?? ''));
    const turns = times(6, (index) =>
      by('eve', `192.0.2.${index}`, index % 2 ? 'known' : 'stranger'),
    );
    const works = [...turns, by('ada', 'a'), by('bob', 'b'), by('joe', 'j')].map(ask);
    await delay(0);
    expect(begun).to.deep.equal(['eve', 'ada', 'bob']);
    for (const { release } of works) release();
    await Promise.all(works.map(({ outcome }) => outcome));
    expect(begun).to.have.length(9);
  });

  it('a full line sends away the last of who has most, and says whose fault it is', async () => {
    const crowd = times(6, () => by('eve', '192.0.2.1'));
    const newcomers = times(5, (index) => by(`new-${index}`, `198.51.100.${index}`));
    // One of eve's is under way, and four may wait.
    const { outcomes } = await orderOf([...crowd, ...newcomers], 1, 4);
    const own = 'too many of its own';
    expect(outcomes.slice(0, 6)).to.deep.equal(['done', own, own, own, own, own]);
    // Of people who ask for one each, the last one has to come again.
    expect(outcomes.slice(6)).to.deep.equal(['done', 'done', 'done', 'done', 'too many']);
  });

  it('who has nothing else in a full line is not told that it is theirs', async () => {
    const takeTurn = createTurns({ atOnce: 1, maxWaiting: 2 });
    const first = held(takeTurn, by('ada', '192.0.2.1'));
    first.release();
    await first.outcome;
    const others = times(3, (index) => by(`c-${index}`, `198.51.100.${index}`));
    const crowd = others.map((turn) => held(takeTurn, turn));
    expect(await held(takeTurn, by('ada', '192.0.2.1')).outcome).to.equal('too many');
    for (const { release } of crowd) release();
    await Promise.all(crowd.map(({ outcome }) => outcome));
  });

  it('what was sent away does not push its account further back', async () => {
    const takeTurn = createTurns({ atOnce: 1, maxWaiting: 2 });
    const works = times(50, () => by('eve', '192.0.2.1')).map((turn) => held(takeTurn, turn));
    const begun: string[] = [];
    const ada = held(takeTurn, by('ada', '192.0.2.1'), () => begun.push('ada'));
    const bob = held(takeTurn, by('bob', 'b'), () => begun.push('bob'));
    for (const { release } of [...works, ada, bob]) release();
    expect(await bob.outcome).to.equal('done');
    // Ada shares the address: she was the last of it when Bob came.
    expect(await ada.outcome).to.equal('too many of its own');
    const outcomes = await Promise.all(works.map(({ outcome }) => outcome));
    expect(outcomes.filter((one) => one === 'done')).to.have.length(2);
    const again = held(takeTurn, by('eve', '192.0.2.1'));
    again.release();
    expect(await again.outcome).to.equal('done');
  });

  it('a turn is given on where the work fails', async () => {
    const takeTurn = createTurns({ atOnce: 1, maxWaiting: 10 });
    const failing = times(5, () => by('eve', '192.0.2.1')).map((turn) =>
      takeTurn(turn, () => Promise.reject(new Error('no'))).catch(() => 'failed'),
    );
    expect(await Promise.all(failing)).to.deep.equal(Array(5).fill('failed'));
    expect(await takeTurn(by('eve', '192.0.2.1'), async () => 'done')).to.equal('done');
  });
});

describe('while many passwords are hashed', () => {
  // What nobody looked at was no guess: with one of them there would be no sign-in afterwards.
  const on = startSeeded({ settings: { limits: { signInFailures: 1 } } });
  const NEW_PASSWORD = 'eight blue pallets, stacked';

  /** Fills both lines, and more. */
  const crowd = (turn: (index: number) => PasswordTurn) =>
    (['stranger', 'known'] as const).flatMap((rank) =>
      Array.from({ length: 110 }, (_, index) => held(inTurn, { ...turn(index), rank })),
    );

  const own = 'Too much is being tried at once, for this account or from your network.';
  const crowds: Readonly<Record<string, Crowd>> = {
    many: {
      turn: (index) => by(`c-${index}`, `10.0.0.${index}`),
      ...{ status: 503, words: 'Many people are signing in at this moment.' },
    },
    'the account': {
      turn: (index) => by('pat', `10.0.0.${index}`),
      ...{ status: 429, words: own },
    },
    'the address': {
      turn: (index) => by(`c-${index}`, '127.0.0.1'),
      ...{ status: 429, words: own },
    },
  };
  for (const [name, { turn, status, words }] of Object.entries(crowds)) {
    it(`of ${name}, a sign-in and a link are told to come back soon; clients do not wait`, async () => {
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

interface Crowd {
  readonly turn: (index: number) => PasswordTurn;
  readonly status: number;
  readonly words: string;
}
