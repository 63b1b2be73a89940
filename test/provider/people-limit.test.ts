/** `limits.people_per_unchecked_client`: how many users can connect an unchecked client. */
import { expect } from 'chai';
import { said, textOf } from '../pages/client-owner.ts';
import { testBrowser } from '../pages/oauth-clients/test-browser.ts';
import { signedIn } from '../pages/signed-in-person.ts';
import { authorizationUrl, pkce, refresh, type TestClient } from '../support/oauth.ts';
import { createPerson, type Page, type Person } from '../support/person.ts';
import { recordedProblems } from '../support/recorded-problems.ts';
import { addPerson, addTestClient, REDIRECT_URI, type SeededPerson } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';
import { onPostgresAndRedis } from '../support/service.ts';
import { outcomeOf } from './authorization-outcome.ts';
import { partnerTokens } from './partner-tokens.ts';

const limits = { peoplePerUncheckedClient: 2 };

const CAUSE = 'as many people have connected this client as may before the operator has checked it';

describe('the limit of users of an unverified client', () => {
  const on = startSeeded({ settings: { limits } });
  let people: readonly SeededPerson[];
  let client: TestClient;
  let third: Person;

  before(async () => {
    people = await Promise.all(
      ['Ann', 'Ben', 'Cem'].map((name) => addPerson(on.service, name, `${name}@example.test`)),
    );
  });
  beforeEach(async () => {
    client = await addTestClient(on.service, 'Free Maps', {
      ownerAccountId: on.seeded.other.accountId,
    });
    for (const place of [0, 1]) expect(await connect(place)).to.equal('code');
    third = await signInAt(2);
  });

  const who = (place: number): SeededPerson => people[place] as SeededPerson;
  const signInAt = (place: number) => signedIn(on.service, who(place));
  const request = (of = client, parameters = {}): URL =>
    authorizationUrl(on.issuer, of, { ...pkce().parameters, ...parameters });
  const outcome = (person: Person, parameters = {}): Promise<string> => outcomeOf(person, request(client, parameters));
  async function connect(place: number, of = client): Promise<string> {
    const url = await createPerson(on.issuer).authorize(request(of), who(place));
    return url.searchParams.has('code') ? 'code' : (url.searchParams.get('error') ?? '');
  }
  const verify = (isVerified: boolean) => on.service.clients.verify(client.id, isVerified);
  const isConnected = async (place: number): Promise<boolean> =>
    (await on.service.connections.find(who(place).accountId, client.id)) !== undefined;

  it('beyond the user limit of a client, the next user gets a page with the reason and a link back', async () => {
    const page = await third.open(request(client, { state: 's 1' }));
    expect(page.status).to.equal(403);
    expect(textOf(page.html))
      .to.include(said('errors.too_many_people-heading'))
      .and.include(said('errors.too_many_people-explanation'));
    const href = page.html.match(/href="(https:[^"]*)"/)?.[1]?.replaceAll('&amp;', '&') ?? '';
    expect(Object.fromEntries(new URL(href).searchParams)).to.include({
      error: 'unauthorized_client',
      error_description: CAUSE,
      state: 's 1',
    });
    expect(await isConnected(2)).to.equal(false);
    expect(await outcome(third, { prompt: 'none' })).to.equal('unauthorized_client');
    // The owner finds it in the list of problems.
    const [problem] = await recordedProblems(on.service, client.id);
    expect(problem).to.include({ step: 'authorize', error: 'unauthorized_client', cause: CAUSE });
  });

  it('users of a client at its limit keep their connections, can refresh, and may approve it again', async () => {
    const first = who(0);
    const tokens = await partnerTokens(on.issuer, { ...on.seeded, person: first }).tokens(client);
    expect((await refresh(on.issuer, client, tokens.refreshToken)).status).to.equal(200);
    expect(await outcome(await signInAt(0))).to.equal('code');
    const page = await (await signInAt(0)).open(request(client, { prompt: 'consent' }));
    expect(textOf(page.html)).to.include('Approve');
    expect(await connect(1)).to.equal('code');
  });

  it("at a client's limit, a new user can take the place of a user who disconnected, and the former user then cannot return", async () => {
    const first = { accountId: who(0).accountId, clientId: client.id };
    await on.service.connections.end(first, 'person_disconnected');
    expect(await connect(2)).to.equal('code');
    expect(await outcome(await signInAt(0))).to.equal('page 403');
  });

  it('the limit applies neither to verified clients, nor to clients of the operator, nor to client tests', async () => {
    await verify(true);
    expect(await outcome(third)).to.equal('consent');
    await verify(false);
    expect(await outcome(third)).to.equal('page 403');
    const owner = await testBrowser(on.service, on.seeded.other);
    expect(await outcomeOf(owner, await owner.begin(client))).to.equal('consent');
    await verify(true);
    expect(await connect(2)).to.equal('code');
    const provided = await addTestClient(on.service, 'Own App');
    for (const place of [0, 1, 2]) expect(await connect(place, provided)).to.equal('code');
  });

  it('a consent page opened before the limit of users was reached connects no user afterwards', async () => {
    await on.service.connections.end({ accountId: who(1).accountId, clientId: client.id }, 'person_disconnected');
    const open: Page = await third.open(request());
    expect(open.forms.some(({ names }) => names.has('decision'))).to.equal(true);
    expect(await connect(1)).to.equal('code');
    const approved = await third.submit(open, { decision: 'approve' });
    expect(await outcomeOf(third, approved)).to.equal('page 403');
    expect(await isConnected(2)).to.equal(false);
  });
});

onPostgresAndRedis('the last free places for users of an unverified client', (start) => {
  const on = startSeeded({ on: start, settings: { limits } });

  it('parallel approvals on two nodes connect no more users to a client than its limit', async () => {
    const nodes = [on.service, await start({ sharing: on.service })];
    const add = (_: unknown, n: number) => addPerson(on.service, 'Racer', `r${n}@example.test`);
    const accounts = await Promise.all(Array.from({ length: 12 }, add));
    const { id } = await addTestClient(on.service, 'Crowded', { ownerAccountId: on.seeded.other.accountId });
    const consent = { clientId: id, name: 'Crowded', hosts: [REDIRECT_URI], maxPeople: 3 };
    await Promise.all(
      accounts.map(({ accountId }, turn) => nodes[turn % 2]?.connections.rememberConsent({ ...consent, accountId })),
    );
    expect(await on.service.connections.countOf(id)).to.equal(3);
  });
});
