/** Mail to the owner of a client when requests of the client are refused for a new reason. */
import { expect } from 'chai';
import { withChecksum } from '../../src/base/random-id.ts';
import { eventually } from '../support/eventually.ts';
import { startMailServer, startsWithMail } from '../support/mail-server.ts';
import { authorizationUrl, exchangeCode, postForm, type TestClient } from '../support/oauth.ts';
import { describeOn, postgresServer, redisServer } from '../support/requirements.ts';
import { addPerson, addTestClient, REDIRECT_URI, type SeededPerson } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { signedIn } from './signed-in-person.ts';

const NO_CODE = `gate_ac_${'x'.repeat(43)}`;
const WRONG_SECRET = withChecksum(`gate_cs_${'x'.repeat(43)}`);
const DAY_SECONDS = 86_400;

const addOwner = (service: TestService): Promise<SeededPerson> => addPerson(service, 'Olga Owner');
const addClient = (service: TestService, name: string, owner?: SeededPerson) =>
  addTestClient(service, name, owner && { ownerAccountId: owner.accountId });

const useWrongSecret = ({ issuer }: TestService, client: TestClient) =>
  exchangeCode(issuer, { ...client, secret: WRONG_SECRET }, NO_CODE);

/** Sends a request that the client authenticates, and that is refused all the same. */
const failAuthenticated = ({ issuer }: TestService, client: TestClient) =>
  exchangeCode(issuer, client, NO_CODE, { scope: 'openid' });

const authorize = ({ issuer }: TestService, client: TestClient, changes: object) =>
  fetch(authorizationUrl(issuer, { ...client, ...changes }), { redirect: 'manual' });

/** Writes the waiting problems, so that the mails about them begin. */
const written = ({ clientRequests }: TestService) => clientRequests.groups('none');

describe('mail about problems of a client', () => {
  // The limit counts by the clock of its store: the tests can move only that of the embedded one.
  const mail = startsWithMail('embedded');
  const on = startSeeded({ on: mail.start, clock: true });
  const to = ({ email }: SeededPerson) =>
    mail.received.filter((one) => one.to.includes(email) && !one.raw.includes('new sign-in'));

  /** Adds a client and its owner. */
  async function addOwned() {
    const owner = await addOwner(on.service);
    return { owner, client: await addClient(on.service, 'Stock Sync', owner) };
  }
  /** Has a mail sent to another owner, before which all earlier mails were sent. */
  async function settled(): Promise<void> {
    await written(on.service);
    const last = await addOwner(on.service);
    await failAuthenticated(on.service, await addClient(on.service, 'Last', last));
    await written(on.service);
    await eventually(() => expect(to(last)).to.have.length(1));
  }

  it('refused authenticated requests cause at most one mail a day, with all open problems of the owner', async () => {
    const owner = await addOwner(on.service);
    const [one, two] = [
      await addClient(on.service, 'First Client', owner),
      await addClient(on.service, 'Second Client', owner),
    ];
    await failAuthenticated(on.service, one);
    await settled();
    await eventually(() => expect(to(owner)).to.have.length(1));
    on.clock.advance(DAY_SECONDS - 60);
    await postForm(on.issuer, '/oauth/token', {
      client_id: two.id,
      client_secret: two.secret,
      grant_type: 'password',
    });
    await settled();
    expect(to(owner)).to.have.length(1);
    on.clock.advance(120);
    await failAuthenticated(on.service, two);
    await settled();
    await eventually(() => expect(to(owner)).to.have.length(2));
    const { text = '' } = to(owner)[1] ?? {};
    expect(text).to.include('First Client: It sends a scope');
    expect(text).to.include('Second Client: It sends a scope');
    expect(text).to.include('Second Client: It uses a grant type that does not exist here.');
    expect(text).to.match(/\/profile\/oauth-clients\r?\n/);
  });

  it('a mail that could not be sent does not count as the mail of the day: the next one names all problems', async () => {
    const { owner, client } = await addOwned();
    mail.refused.add(owner.email);
    await failAuthenticated(on.service, client);
    await settled();
    mail.refused.delete(owner.email);
    await postForm(on.issuer, '/oauth/token', { client_id: client.id, client_secret: client.secret, grant_type: 'x' });
    await settled();
    expect(to(owner)).to.have.length(1);
    expect(to(owner)[0]?.text)
      .to.include('Stock Sync: It sends a scope')
      .and.include('a grant type that does not exist')
      .and.include(`${on.issuer}/profile/oauth-clients/${client.id}/problems`);
  });

  it('the same error of a client is mailed again only after its problem is no longer listed', async () => {
    const { owner, client } = await addOwned();
    await failAuthenticated(on.service, client);
    await settled();
    on.clock.advance(2 * DAY_SECONDS);
    await failAuthenticated(on.service, client);
    await settled();
    expect(to(owner), 'the problem is still open').to.have.length(1);
    on.clock.advance(8 * DAY_SECONDS);
    await failAuthenticated(on.service, client);
    await settled();
    await eventually(() => expect(to(owner), 'it had left the list').to.have.length(2));
  });

  it('requests that any stranger can send cause no mail, and do not count towards the limit of one mail a day', async () => {
    const { owner, client } = await addOwned();
    await useWrongSecret(on.service, client);
    await exchangeCode(on.issuer, { id: client.id, redirectUri: REDIRECT_URI }, NO_CODE);
    const headers = { 'content-type': 'text/plain' };
    const body = `client_id=${client.id}`;
    await fetch(`${on.issuer}/oauth/token`, { method: 'POST', headers, body });
    await authorize(on.service, client, { redirectUri: `${REDIRECT_URI}/` });
    await authorize(on.service, client, { redirectUri: 'https://partner.example.evil.example/' });
    await authorize(on.service, client, { redirectUri: '' });
    await settled();
    expect(to(owner)).to.deep.equal([]);
    expect((await on.service.clientRequests.groups(client.id)).length).to.be.above(4);
    await failAuthenticated(on.service, client);
    await settled();
    await eventually(() => expect(to(owner)).to.have.length(1));
    expect(to(owner)[0]?.text).to.not.include('parameter');
  });

  it('a mail about authorization requests does not use up the limit of mails about authenticated requests', async () => {
    const { owner, client } = await addOwned();
    const evil = 'evil.example';
    for (const changes of [{ scope: evil }, { response_type: 'token' }, { state: undefined }]) {
      await fetch(authorizationUrl(on.issuer, client, changes), { redirect: 'manual' });
      await written(on.service);
    }
    await settled();
    await eventually(() => expect(to(owner)).to.have.length(1));
    expect(to(owner)[0]?.raw).to.not.include(evil);
    await failAuthenticated(on.service, client);
    await settled();
    await eventually(() => expect(to(owner)).to.have.length(2));
  });

  it('no mail is sent about problems of a single user, such as an old code', async () => {
    const { owner, client } = await addOwned();
    await exchangeCode(on.issuer, client, NO_CODE);
    await settled();
    expect(to(owner)).to.deep.equal([]);
    expect(await on.service.clientRequests.groups(client.id)).to.have.length(1);
  });

  it('no mail is sent to owners who switched it off or are suspended, or about clients of the operator', async () => {
    const [quiet, gone] = [await addOwner(on.service), await addOwner(on.service)];
    const browser = await signedIn(on.service, quiet);
    const page = await browser.get('/profile/security');
    expect(page.html).to.match(/name="mail" value="client_problem" checked/);
    await browser.submit(page, { mail: ['new_device'] });
    const clients = [
      await addClient(on.service, 'Quiet', quiet),
      await addClient(on.service, 'Gone', gone),
      await addClient(on.service, 'Provided by no person'),
    ];
    await on.service.accounts.suspend(gone.accountId);
    for (const client of clients) await failAuthenticated(on.service, client);
    await settled();
    expect([...to(quiet), ...to(gone)]).to.deep.equal([]);
    const about = mail.received.filter(({ text }) => text.includes('Provided by no person'));
    expect(about).to.deep.equal([]);
  });
});

describeOn([postgresServer, redisServer], 'mail about problems of a client at two nodes', () => {
  const on = startSeeded({ on: 'postgres+redis' });

  it('one mail is sent if both nodes refuse requests of the client at the same moment', async () => {
    const server = await startMailServer();
    const settings = { mail: { smtpUrl: server.url, from: 'gatehouse@localhost' } };
    const nodes = [
      await startTestService({ sharing: on.service, settings }),
      await startTestService({ sharing: on.service, settings }),
    ];
    try {
      for (const _ of [1, 2, 3]) {
        const owner = await addOwner(on.service);
        const client = await addClient(on.service, 'Stock Sync', owner);
        const before = server.received.length;
        await Promise.all(nodes.map((node) => failAuthenticated(node, client)));
        await Promise.all(nodes.map(written));
        await eventually(() => expect(server.received).to.have.length(before + 1));
      }
    } finally {
      // Closing a node waits for its mails.
      for (const node of nodes) await node.close();
      await server.close();
    }
    expect(server.received).to.have.length(3);
  });
});
