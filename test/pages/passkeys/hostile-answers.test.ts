/** Forged and malformed passkey answers are refused with a helpful page and change nothing. */
import { expect } from 'chai';
import { type Lie, makePasskey, type SoftPasskey } from '../../support/authenticator.ts';
import { createPerson, isSignedIn } from '../../support/person.ts';
import { startSeeded } from '../../support/seeded.ts';
import { said } from '../client-owner.ts';
import { type SignedInPerson, signedIn } from '../signed-in-person.ts';
import { addPasskey, NEW, optionsFor, SECURITY, signInWith } from './soft-passkey.ts';

describe('a passkey answer is accepted only if it is valid, fresh and for the right user', () => {
  const on = startSeeded({
    clock: true,
    settings: { limits: { signInFailuresPerAddress: 1_000 } },
  });
  let owner: SignedInPerson;
  let passkey: SoftPasskey;

  before('add one', async () => {
    owner = await signedIn(on.service, on.seeded.person);
    ({ passkey } = await addPasskey(on.issuer, owner));
  });

  const stored = async () => {
    const rows = await on.service.database.query<{ counter: string; last_used_at: Date | null }>(
      'SELECT counter, last_used_at FROM passkeys ORDER BY created_at',
    );
    const used = await on.service.database.query('SELECT FROM used_challenges');
    return [rows, used.length];
  };

  const LIES: Readonly<Record<string, Lie>> = {
    'for another site': { origin: 'https://gatehouse.example' },
    'for another port of this host': { origin: 'http://localhost:1' },
    'for another RP ID': { rpId: 'gatehouse.example' },
    'in a frame of another site': { crossOrigin: true },
    'for a purpose other than a sign-in': { type: 'webauthn.create' },
    'without user verification': { flags: 0x01 | 0x08 | 0x10 },
    'without the presence of a user': { flags: 0x04 | 0x08 | 0x10 },
    'with another type of key than the registered one': { flags: 0x01 | 0x04 },
    'with impossible flags': { flags: 0x01 | 0x04 | 0x10 },
    'for another account': { userHandle: 'A'.repeat(64) },
    'with a signature over something else': { isTampered: true },
    'to a challenge of another browser': { challenge: 'A'.repeat(75) },
    'to no challenge': { challenge: '' },
  };

  for (const [how, lie] of Object.entries(LIES)) {
    it(`a passkey that answers ${how} is refused`, async () => {
      const before = await stored();
      const stranger = createPerson(on.issuer);
      const answer = await signInWith(stranger, passkey, { lie });
      expect(answer.status, answer.html).to.equal(401);
      expect(answer.html).to.include('id="problem" role="alert"').and.not.include(said('passkey.gone'));
      expect(await isSignedIn(stranger)).to.equal(false);
      expect(await stored()).to.deep.equal(before);
    });
  }

  /** The log quotes what was refused, shortened and without control characters. */
  function expectPlainLog(): void {
    const lines = on.service.logLines.filter((line) => line.includes('a passkey was refused'));
    expect(lines).to.not.deep.equal([]);
    for (const line of lines) {
      const { reason } = JSON.parse(line);
      expect(reason).to.be.a('string').with.lengthOf.below(201).and.not.match(/\p{C}/u);
    }
  }

  const GARBAGE = ['', '{', 'null', '[]', '"x"', '{"id":1}', '[['.repeat(9_000), '\u0000', '{"\u0085\u202e'];
  it('a malformed passkey answer is refused at the sign-in, and when a passkey is added', async () => {
    const before = await stored();
    const { id } = passkey;
    const empty = { id, rawId: id, type: 'public-key', response: {} };
    const asked = JSON.parse(passkey.answer(await optionsFor(owner, 'sign-in')));
    const broken = ['clientDataJSON', 'authenticatorData', 'signature'].flatMap((part) =>
      [undefined, 7, '', 'AAAA', null, {}].map((value) =>
        JSON.stringify({ ...asked, response: { ...asked.response, [part]: value } }),
      ),
    );
    const stranger = createPerson(on.issuer);
    const page = await stranger.get('/login');
    for (const text of [...GARBAGE, JSON.stringify(empty), ...broken]) {
      const answer = await stranger.submit(page, { passkey: text });
      expect(answer.status, text.slice(0, 100)).to.equal(401);
    }
    const large = await stranger.submit(page, { passkey: 'x'.repeat(300_000) });
    expect(large.status).to.equal(413);
    const form = await owner.get(NEW);
    for (const text of [...GARBAGE.slice(1), JSON.stringify(empty)]) {
      const answer = await owner.submit(form, { made_passkey: text });
      expect(answer.status, text.slice(0, 100)).to.equal(422);
    }
    expect(await stored()).to.deep.equal(before);
    expectPlainLog();
  });

  it('a passkey answer is accepted once, in the same browser, within ten minutes', async () => {
    const person = createPerson(on.issuer);
    const page = await person.get('/login');
    const options = await optionsFor(person, 'sign-in');
    const answer = passkey.answer(options);

    const elsewhere = createPerson(on.issuer);
    const stolen = await elsewhere.submit(await elsewhere.get('/login'), { passkey: answer });
    expect(stolen.status).to.equal(401);
    expect(stolen.html).to.include(said('passkey.over'));

    // Only one of several parallel requests succeeds.
    const answers = await Promise.all([1, 2, 3].map(() => person.submit(page, { passkey: answer })));
    expect(answers.map(({ status }) => status).sort()).to.deep.equal([303, 401, 401]);
    const again = createPerson(on.issuer);
    await again.get('/login');
    expect((await person.post('/login', { passkey: answer })).status).to.equal(403);

    for (const [seconds, status] of [
      [599, 303],
      [600, 401],
    ] as const) {
      const late = createPerson(on.issuer);
      const form = await late.get('/login');
      const asked = await optionsFor(late, 'sign-in');
      on.clock.advance(seconds);
      const sent = await late.submit(form, { passkey: passkey.answer(asked) });
      expect(sent.status, `${seconds} s`).to.equal(status);
    }
  });

  it('a passkey answer to a sign-in challenge does not confirm an action, and vice versa', async () => {
    const user = await signedIn(on.service, on.seeded.person);
    const { passkey: own } = await addPasskey(on.issuer, user, { name: 'Phone' });
    on.clock.advance(601);
    const asked = await user.get(NEW);
    expect(asked.html).to.include(said('confirm.title'));
    const wrong = own.answer(await optionsFor(user, 'sign-in'));
    expect((await user.submit(asked, { passkey: wrong })).status).to.equal(401);
    const confirming = own.answer(await optionsFor(user, 'confirm'));
    const stranger = createPerson(on.issuer);
    const login = await stranger.get('/login');
    expect((await stranger.submit(login, { passkey: confirming })).status).to.equal(401);
    const right = await user.submit(asked, { passkey: confirming });
    expect([right.status, right.location?.pathname]).to.deep.equal([303, NEW]);
    expect((await user.get(NEW)).html).to.include(said('passkey.create'));
  });

  it("a passkey of another user does not confirm an action, and the attempt is in the user's log", async () => {
    const other = await signedIn(on.service, on.seeded.other);
    on.clock.advance(601);
    const answer = passkey.answer(await optionsFor(other, 'confirm'));
    const page = await other.send(NEW, { passkey: answer });
    expect(page.status).to.equal(401);
    expect(page.html).to.include(said('passkey.another'));
    const [last] = await on.service.activity.of(on.seeded.other.accountId, { limit: 1 });
    expect(last).to.deep.include({ action: 'passkey_refused', details: { reason: 'another' } });
  });

  it('each sign-in with a passkey whose counter does not increase is refused and recorded', async () => {
    const who = await signedIn(on.service, on.seeded.other);
    const { passkey: counting } = await addPasskey(on.issuer, who, { lie: { counter: 1 } });
    counting.counter = 7;
    expect((await signInWith(createPerson(on.issuer), counting)).status).to.equal(303);
    for (const counter of [7, 6, 0]) {
      const person = createPerson(on.issuer);
      const page = await person.get('/login');
      const answer = counting.answer(await optionsFor(person, 'sign-in'), { counter });
      const refused = await person.submit(page, { passkey: answer });
      expect(refused.status).to.equal(401);
      expect(refused.html).to.include(said('passkey.copied'));
      // The same answer is refused as expired a second time, so repeating it cannot fill the log.
      expect((await person.submit(page, { passkey: answer })).html).to.include(said('passkey.over'));
    }
    const log = await on.service.activity.of(on.seeded.other.accountId, { limit: 9 });
    const refused = log.filter(({ details }) => details.reason === 'copied');
    expect(refused).to.have.length(3);
    const activity = await who.get('/profile/activity');
    expect(activity.html).to.include(said('action.passkey_refused')).and.include(said('activity.refused-copied'));
    counting.counter = 8;
    expect((await signInWith(createPerson(on.issuer), counting)).status).to.equal(303);
  });

  const REFUSED_WHEN_ADDED: Readonly<Record<string, Lie>> = {
    'for another site': { origin: 'https://gatehouse.example' },
    'for another RP ID': { rpId: 'gatehouse.example' },
    'in a frame of another site': { crossOrigin: true },
    'for a sign-in': { type: 'webauthn.get' },
    'without user verification': { flags: 0x01 },
    'to another challenge': { challenge: 'A'.repeat(75) },
    // CBOR of { x5c: [] }: a statement with certificates, whose URLs would be fetched.
    'with certificates': { attestation: ['packed', Buffer.from('a16378356380', 'hex')] },
    'with an attestation of Apple': { attestation: ['apple', Buffer.from([0xa0])] },
    'with control characters': { attestation: [`\u0085\n${'x'.repeat(200)}`, Buffer.from([0xa0])] },
  };
  for (const [how, lie] of Object.entries(REFUSED_WHEN_ADDED)) {
    it(`a new passkey created ${how} is not stored`, async () => {
      const person = await signedIn(on.service, on.seeded.person);
      const before = await stored();
      const { answer } = await addPasskey(on.issuer, person, { lie });
      expect(answer.status, answer.html).to.equal(422);
      expect(answer.html).to.include(said('passkey.add')).and.include('role="alert"');
      expect(await stored()).to.deep.equal(before);
      expectPlainLog();
      if (!lie.attestation || how === 'with control characters') return;
      // The log names the refused attestation, which was not parsed.
      const logged = on.service.logLines.filter((line) => line.includes('a passkey was refused'));
      expect(logged.at(-1)).to.include(`an attestation (${lie.attestation[0]})`);
    });
  }

  it('a passkey is stored once, for the account that requested it, and never for a second account', async () => {
    const person = await signedIn(on.service, on.seeded.person);
    const other = await signedIn(on.service, on.seeded.other);
    const options = await optionsFor(person, 'add');
    const { made } = makePasskey(on.issuer, options);
    const stolen = await other.submit(await other.get(NEW), { made_passkey: made });
    expect(stolen.status).to.equal(422);
    const page = await person.get(NEW);
    expect((await person.submit(page, { made_passkey: made })).location?.pathname).to.equal(SECURITY);
    expect((await person.submit(page, { made_passkey: made })).status).to.equal(422);
    const excluded = (await optionsFor(person, 'add')).excludeCredentials.map(({ id }) => id);
    expect(excluded).to.include(passkey.id);
    // Move the clock: the user may have left the browser long ago, still signed in.
    on.clock.advance(601);
    expect((await person.get('/passkey-options/add')).status).to.equal(403);
  });
});

describe('invalid passkey answers are limited per network', () => {
  const on = startSeeded({ settings: { limits: { signInFailuresPerAddress: 2 } } });

  it('too many invalid passkey answers get 429, but a correct answer is still accepted', async () => {
    const { passkey } = await addPasskey(on.issuer, await signedIn(on.service, on.seeded.person));
    const person = createPerson(on.issuer);
    const page = await person.get('/login');
    const answers = [];
    for (const _ of [1, 2, 3]) answers.push(await person.submit(page, { passkey: '{' }));
    expect(answers.map(({ status }) => status)).to.deep.equal([401, 401, 429]);
    expect(answers[2]?.headers.get('retry-after')).to.match(/^\d+$/);
    expect((await signInWith(person, passkey)).status).to.equal(303);
  });
});
