/** `prompt=select_account`: the user says with which account an authorization request continues. */
import { expect } from 'chai';
import { said } from '../pages/client-owner.ts';
import { signedIn } from '../pages/signed-in-person.ts';
import { authorizationUrl } from '../support/oauth.ts';
import { createPerson, type Page, type Person } from '../support/person.ts';
import { startSeeded } from '../support/seeded.ts';
import { answerIn } from './authorization-outcome.ts';

describe('the choice of the account', () => {
  const on = startSeeded({ clock: true });

  const open = (person: Person, prompt = 'select_account'): Promise<Page> =>
    person.open(authorizationUrl(on.issuer, on.clients.confidential, { prompt, state: 's1' }));
  const decide = async (person: Person, page: Page, decision: string): Promise<Page> =>
    person.follow(await person.submit(page, { decision }));

  const signInFirst = () => signedIn(on.service, on.seeded.person);

  function expectChoice({ html }: Page): void {
    expect(html).to.include(said('account-choice.title')).and.include(on.seeded.person.email);
  }

  it('a signed-in user continues with this account, and then approves', async () => {
    const person = await signInFirst();
    const choice = await open(person);
    expectChoice(choice);
    const consent = await decide(person, choice, 'continue');
    expect(consent.html).to.include('value="approve"').and.include(on.seeded.person.email);
    const answer = answerIn(await decide(person, consent, 'approve'));
    expect(answer.code).to.match(/^gate_ac_/);
    // Approved before: only the account is asked for.
    const again = answerIn(await decide(person, await open(person), 'continue'));
    expect(again.code).to.match(/^gate_ac_/);
  });

  it('another account signs in, approves for itself, and is not asked to choose again', async () => {
    const person = await signInFirst();
    const signIn = await decide(person, await open(person), 'switch-account');
    expect(signIn.html).to.include('name="password"').and.not.include(on.seeded.person.email);
    const { email, password } = on.seeded.other;
    const consent = await person.follow(await person.submit(signIn, { email, password }));
    expect(consent.html).to.include('value="approve"').and.include(email);
    expect(consent.html).to.not.include(on.seeded.person.email);
  });

  it('without a session it is the sign-in page; afterwards only the approval is asked for', async () => {
    const person = createPerson(on.issuer);
    const signIn = await open(person);
    expect(signIn.html).to.include('name="password"');
    const { email, password } = on.seeded.person;
    const consent = await person.follow(await person.submit(signIn, { email, password }));
    expect(consent.html).to.not.include(said('account-choice.title'));
  });

  it('cancelling sends access_denied with the state', async () => {
    const person = await signInFirst();
    const answer = answerIn(await decide(person, await open(person), 'deny'));
    expect(answer).to.include({ error: 'access_denied', state: 's1' });
  });

  it('a user who has signed out meanwhile signs in, and another user learns who is signed in', async () => {
    const person = await signInFirst();
    const choice = await open(person);
    await person.submit(await person.get('/logout'), {});
    const signIn = await decide(person, choice, 'continue');
    expect(signIn.html).to.include('name="password"');
    await person.signIn(on.seeded.other);
    const stale = await decide(person, choice, 'continue');
    expect([stale.status, stale.html.includes(on.seeded.other.name)]).to.deep.equal([409, true]);
  });

  it('together with login the user signs in, and with none the request is refused', async () => {
    const person = await signInFirst();
    expect((await open(person, 'login select_account')).html).to.include('name="password"');
    const refused = answerIn(await open(person, 'none select_account'));
    expect(refused).to.include({ error: 'invalid_request', state: 's1' });
  });
});
