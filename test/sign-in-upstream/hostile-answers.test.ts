/** Forged, replayed or misdirected answers of a provider are refused. */
import { generateKeyPairSync } from 'node:crypto';
import { expect } from 'chai';
import type { Lie, Traveller } from '../support/upstream.ts';
import { GRACE, startWithUpstream, WITH_PLATFORM } from './service.ts';

const FOREIGN_KEY = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey;

describe('an answer of a provider', () => {
  const on = startWithUpstream({ hasSecond: true });

  const begin = async (person: Traveller, fields: Record<string, string> = WITH_PLATFORM) =>
    person.submit(await person.get('/login'), fields);
  const isSignedIn = async (person: Traveller): Promise<boolean> => (await person.get('/profile')).status === 200;
  const failures = async (): Promise<number> => {
    const { text } = await on.service.metrics.text();
    const line = /upstream_sign_ins_total\{provider="platform",outcome="failed"\} (\d+)/.exec(text);
    return Number(line?.[1]);
  };

  beforeEach(() => {
    on.upstream.account = GRACE;
    on.second.account = GRACE;
    on.upstream.lie = {};
  });

  const saying = (more: object): Lie => ({ claims: (said) => ({ ...said, ...more }) });
  const expiring = (seconds: number): Lie => ({ claims: (said) => ({ ...said, exp: Number(said.iat) + seconds }) });
  const LIES: Readonly<Record<string, Lie>> = {
    'with the nonce of another sign-in': saying({ nonce: 'n'.repeat(43) }),
    'without a nonce': { claims: ({ nonce: _, ...said }) => said },
    'of another issuer': saying({ iss: 'https://evil.example' }),
    'for another client': saying({ aud: 'another-client' }),
    'for several clients, given to another': saying({ aud: ['gatehouse', 'other'], azp: 'other' }),
    'given to another client, for this one alone': saying({ azp: 'other' }),
    'issued tomorrow': {
      claims: (said) => ({ ...said, iat: Number(said.iat) + 86_400, exp: Number(said.iat) + 90_000 }),
    },
    'that expires in ten years': expiring(10 * 365 * 86_400),
    'about a subject that is a number': { text: (json) => json.replace(/"sub":"[^"]*"/, '"sub":17') },
    'that has expired': expiring(-61),
    'without a subject': { claims: ({ sub: _, ...said }) => said },
    'with a subject that is not printable': saying({ sub: 'a\u0000' }),
    'without a signature': { isUnsigned: true },
    'signed with a key that it does not publish': { signing: FOREIGN_KEY },
  };
  for (const [which, lie] of Object.entries(LIES)) {
    it(`a provider’s answer ${which} is refused`, async () => {
      on.upstream.lie = lie;
      const person = on.traveller();
      const before = await failures();
      const page = await person.travel(await begin(person));
      expect(page.status, page.html).to.equal(403);
      expect(page.html).to.include('does not prove who you are');
      expect(await isSignedIn(person)).to.equal(false);
      expect(await failures()).to.equal(before + 1);
    });
  }

  it('an answer must come from the provider that was asked, to its own callback URL (mix-up, RFC 9207)', async () => {
    const person = on.traveller();
    const callback = await person.untilCallback(await begin(person));
    const toSecond = new URL(callback);
    toSecond.pathname = '/login/partner/callback';
    expect((await person.get(toSecond)).status).to.equal(400);
    // The failed attempt consumed the state.
    expect((await person.get(callback)).status).to.equal(400);
    const again = await person.untilCallback(await begin(person));
    again.searchParams.set('iss', on.second.issuer);
    expect((await person.get(again)).status).to.equal(403);
    expect(await isSignedIn(person)).to.equal(false);
  });

  it('a provider’s answer is accepted once, in the browser of the sign-in, within ten minutes', async () => {
    const [person, victim] = [on.traveller(), on.traveller()];
    const callback = await person.untilCallback(await begin(person));
    // Login CSRF: an attacker's answer, in a browser with or without a pending sign-in of its own.
    expect((await on.traveller().get(callback)).status).to.equal(400);
    const own = await victim.untilCallback(await begin(victim));
    own.searchParams.set('code', callback.searchParams.get('code') ?? '');
    const swapped = await victim.get(callback);
    expect(swapped.status).to.equal(400);
    expect((await victim.get(own)).status).to.equal(403);
    expect(await isSignedIn(victim)).to.equal(false);
    // None of the attempts consumed the answer for its own browser.
    expect((await person.get(callback)).status).to.equal(303);
    expect(await isSignedIn(person)).to.equal(true);
    await person.submit(await person.get('/logout'), {});

    const twice = await person.untilCallback(await begin(person));
    const answers = await Promise.all([person.get(twice), person.get(twice), person.get(twice)]);
    expect(answers.map(({ status }) => status).toSorted()).to.deep.equal([303, 400, 400]);

    const slow = on.traveller();
    const late = await slow.untilCallback(await begin(slow));
    on.clock.advance(601);
    expect((await slow.get(late)).status).to.equal(400);
  });

  it('a provider’s answer with a replayed code is refused by the provider and by Gatehouse', async () => {
    const person = on.traveller();
    const first = await person.untilCallback(await begin(person));
    await person.get(first);
    const stranger = on.traveller();
    const second = await stranger.untilCallback(await begin(stranger));
    second.searchParams.set('code', first.searchParams.get('code') ?? '');
    expect((await stranger.get(second)).status).to.equal(403);
    expect(await isSignedIn(stranger)).to.equal(false);
  });

  it('a provider’s answer that is signed with its new key is accepted immediately', async () => {
    expect((await on.signIn(GRACE)).html).to.include('Grace Person');
    await on.upstream.rotateKeys();
    expect((await on.signIn(GRACE)).html).to.include('Grace Person');
  });

  it('a provider’s answer is logged without code, token and state', async () => {
    const person = on.traveller();
    on.upstream.lie = { signing: FOREIGN_KEY };
    const callback = await person.untilCallback(await begin(person));
    await person.get(callback);
    const log = on.service.logLines.join();
    for (const name of ['code', 'state']) {
      expect(log).not.to.include(callback.searchParams.get(name) ?? 'x');
    }
    expect(log).to.include('a sign-in with a provider failed').and.not.include('eyJ');
  });

  it('a client secret that the provider rejects is logged as a configuration problem, and explained on the page', () =>
    on.service.withSettings(on.providing({ clientSecret: 'an older secret' }), async () => {
      const page = await on.signIn(GRACE);
      expect(page.status).to.equal(503);
      expect(page.html).to.include('Sign-in with <bdi>Warehouse platform</bdi> does not work');
      const log = on.service.logLines.join();
      expect(log).to.include('a provider does not accept our client ID or secret');
      expect(log).to.include('client_secret_file').and.not.include('an older secret');
      const { text } = await on.service.metrics.text();
      expect(text).to.include('upstream_sign_ins_total{provider="platform",outcome="misconfigured"} 1');
    }));
});
