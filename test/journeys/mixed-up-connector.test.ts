/**
 * A connector that confuses the services it connects (COAT, CORF and COSF in
 * draft-ietf-oauth-security-topics-update): with *always ask* no code leaves without a click.
 */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { atEndOfFile } from '../support/end-of-run.ts';
import { authorizationUrl, type TestClient } from '../support/oauth.ts';
import { createPerson, type Page, type Person } from '../support/person.ts';
import { addTestClient } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';

const NAME = 'Everything Connector';

/** What the connector does with a code that arrives: it sends it to the service of its `state`, for that account. */
interface Delivered {
  readonly service: string;
  readonly account: string;
  readonly code: string;
}

/**
 * A platform with one client and one redirect URI for all services. It trusts the `state` alone: neither the browser
 * nor the service that answers is compared with those of the start.
 */
async function startConnector() {
  const delivered: Delivered[] = [];
  const started = new Map<string, Omit<Delivered, 'code'>>();
  const server: Server = createServer((request, response) => {
    const { searchParams: sent } = new URL(request.url ?? '/', 'http://connector');
    const flow = started.get(sent.get('state') ?? '');
    const code = sent.get('code');
    if (flow && code) delivered.push({ ...flow, code });
    response.end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  atEndOfFile(async () => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return {
    redirectUri: `http://127.0.0.1:${port}/callback`,
    delivered,
    /** @returns the `state` of a flow that connects this service to this account of the connector */
    start(service: string, account: string): string {
      const state = `${service}-${account}-${started.size}`;
      started.set(state, { service, account });
      return state;
    },
  };
}

describe('a connector that mixes services up', () => {
  const on = startSeeded();
  let connector: Awaited<ReturnType<typeof startConnector>>;
  let client: TestClient;
  let victim: Person;

  before(async () => {
    connector = await startConnector();
    client = await addTestClient(on.service, NAME, { redirectUris: [connector.redirectUri] });
    victim = on.partner.browser;
    await victim.signIn(on.seeded.person);
    await on.partner.code(client);
  });

  beforeEach(() => {
    connector.delivered.length = 0;
  });

  /** The victim's browser opens the URL and follows all redirects, but clicks nothing. */
  async function opened(parameters: Record<string, string>): Promise<Page> {
    const page = await victim.follow(await victim.get(authorizationUrl(on.issuer, client, parameters)));
    if (page.location) await fetch(page.location);
    return page;
  }

  it('no code leaves without a click on a page that names the client, also in a flow that an attacker began', async () => {
    // COAT (a service of the attacker sends the browser to us), CORF (a page starts the flow) and COSF (a link to a
    // flow of the attacker) differ only in the account that the connector keeps for the `state`.
    const start = () => connector.start('evil.example', 'victim');
    // Without the setting, each of them gets a code without a click.
    await on.service.clients.setAlwaysAsks(client.id, false, 'owner');
    await opened({ state: start() });
    expect(connector.delivered, 'the attack').to.have.length(1);

    await on.service.clients.setAlwaysAsks(client.id, true, 'owner');
    connector.delivered.length = 0;
    for (const more of [{}, { login_hint: on.seeded.person.email }, { response_mode: 'query' }]) {
      const page = await opened({ state: start(), ...more });
      expect(page.html).to.include(NAME).and.include('name="decision" value="approve"');
    }
    const silent = await opened({ state: start(), prompt: 'none' });
    expect(silent.location?.searchParams.get('error')).to.equal('consent_required');
    expect(connector.delivered).to.deep.equal([]);

    const denied = await victim.submit(await opened({ state: start() }), { decision: 'deny' });
    expect((await victim.follow(denied)).location?.searchParams.has('code')).to.equal(false);
  });

  it('with always ask, neither a sign-in nor the choice of an account takes the place of the click', async () => {
    await on.service.clients.setAlwaysAsks(client.id, true, 'owner');
    const { person } = on.seeded;
    const state = () => connector.start('gatehouse', 'attacker');
    const again = await victim.submit(await opened({ state: state(), prompt: 'login' }), {
      email: person.email,
      password: person.password,
    });
    expect((await victim.follow(again)).html).to.include('name="decision" value="approve"');
    const choice = await opened({ state: state(), prompt: 'select_account' });
    const chosen = await victim.submit(choice, { decision: 'continue' });
    expect((await victim.follow(chosen)).html).to.include('name="decision" value="approve"');
    const elsewhere = createPerson(on.issuer);
    const request = authorizationUrl(on.issuer, client, { state: state() });
    const signIn = await elsewhere.follow(await elsewhere.get(request));
    const signedIn = await elsewhere.submit(signIn, { email: person.email, password: person.password });
    expect((await elsewhere.follow(signedIn)).html).to.include('name="decision" value="approve"');
    expect(connector.delivered).to.deep.equal([]);
  });

  it('with always ask, a click answers only the request whose page was shown', async () => {
    await on.service.clients.setAlwaysAsks(client.id, true, 'owner');
    const page = await opened({ state: connector.start('gatehouse', 'victim') });
    const approved = await victim.follow(await victim.submit(page, { decision: 'approve' }));
    expect(approved.location?.searchParams.get('code')).to.match(/^gate_ac_/);
    const next = await opened({ state: connector.start('evil.example', 'victim') });
    expect(next.html).to.include('name="decision" value="approve"');
    // The answered page, sent once more, gives no second code.
    const twice = await victim.follow(await victim.submit(page, { decision: 'approve' }));
    expect(twice.location).to.equal(undefined);
    expect(connector.delivered).to.deep.equal([]);
  });
});
