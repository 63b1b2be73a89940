/** Secret keys are rotated step by step while clients and sessions stay valid. */
import { expect } from 'chai';
import type { Keys } from '../../src/config/environment.ts';
import { fieldOf } from '../pages/signed-in-person.ts';
import { granted, partnerTokens } from '../provider/partner-tokens.ts';
import { refresh, type TestClient } from '../support/oauth.ts';
import { createPerson, isSignedIn, type Person } from '../support/person.ts';
import { describeOn, postgresServer, redisServer } from '../support/requirements.ts';
import { type Seed, seed } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';
import { startsOn, type TestService } from '../support/service.ts';

const OLD = 'an-old-key-of-the-tests-0123456789abcdef';
const NEW = 'a-new-key-of-the-tests-0123456789abcdefg';

const secrets = (...keys: Keys) => ({ cookieKeys: keys, tokenKeys: keys });

const connect = async (node: TestService, seeded: Seed, browser: Person): Promise<string> =>
  (await partnerTokens(node.issuer, seeded, browser).tokens(seeded.clients.confidential)).refreshToken;

/** Refreshes with a token that must be accepted. @returns its successor. */
const refreshed = async (node: TestService, client: TestClient, token: string): Promise<string> =>
  (await granted(refresh(node.issuer, client, token))).refreshToken;

describe('key rotation', () => {
  const start = startsOn();

  it('rotating keys ends no session and no refresh token; the old key is invalid once it is removed', async () => {
    let node = await start({ settings: { secrets: secrets(OLD) } });
    const { issuer, settings } = node;
    const restart = async (...keys: Keys): Promise<void> => {
      await node.close();
      const { server, storage } = settings;
      node = await start({ settings: { issuer, server, storage, secrets: secrets(...keys) } });
    };
    const seeded = await seed(node);
    const client = seeded.clients.confidential;
    const browser = createPerson(issuer);
    const unusedBrowser = createPerson(issuer);
    let current = await connect(node, seeded, browser);
    const unusedToken = await connect(node, seeded, unusedBrowser);
    expect(await isSignedIn(browser)).to.equal(true);

    for (const [first, second] of [
      [OLD, NEW],
      [NEW, OLD],
    ] as const) {
      await restart(first, second);
      const page = await browser.get('/profile');
      expect(page.status, first).to.equal(200);
      // A cookie that is signed again keeps its expiry.
      const session = page.headers.getSetCookie().filter((line) => line.startsWith('gate_session'));
      expect(session.length > 0, first).to.equal(first === NEW);
      for (const line of session) expect(line).to.match(/; expires=/);
      const before = current;
      current = await refreshed(node, client, before);
      // A retry returns the same successor, with the former or the new key.
      expect(await refreshed(node, client, before)).to.equal(current);
    }

    await restart(NEW);
    expect(await isSignedIn(browser), 'the cookie of the used browser was signed again').to.equal(true);
    expect(await isSignedIn(unusedBrowser), 'the cookie of the unused browser was not').to.equal(false);
    const { status, body } = await refresh(issuer, client, unusedToken);
    expect(status).to.equal(400);
    expect(body.error).to.equal('invalid_grant');
    current = await refreshed(node, client, current);
    // The session ended cleanly: the user can sign in again.
    expect((await unusedBrowser.signIn(seeded.person)).status).to.equal(200);
  });
});

describeOn([postgresServer, redisServer], 'key rotation, two nodes', () => {
  const start = startsOn('postgres+redis');
  const on = startSeeded({ on: start, settings: { secrets: secrets(OLD) } });
  const nodeWith = (...keys: Keys) => start({ sharing: on.service, settings: { secrets: secrets(...keys) } });

  /** Asserts that a session and a refresh token of one node are accepted by the other. */
  async function expectAccepted(from: TestService, to: TestService): Promise<void> {
    const browser = createPerson(from.issuer);
    const token = await connect(from, on.seeded, browser);
    expect(await isSignedIn(browser, to.issuer), 'session').to.equal(true);
    const successor = await refreshed(to, on.seeded.clients.confidential, token);
    await refreshed(from, on.seeded.clients.confidential, successor);
    expect(await isSignedIn(browser, from.issuer), 'session on the way back').to.equal(true);
  }

  /** Asserts that a form that one node rendered is accepted by the other. */
  async function expectFormAccepted(from: TestService, to: TestService): Promise<void> {
    const visitor = createPerson(from.issuer);
    const form_token = fieldOf(await visitor.get(`${from.issuer}/login`), 'form_token');
    const { email, password } = on.seeded.person;
    const fields = { form_token, email, password };
    expect((await visitor.post(`${to.issuer}/login`, fields, { origin: to.issuer })).status, 'form').to.equal(303);
  }

  it('nodes before and after the switch to a new signing key accept the tokens and sessions of each other', async () => {
    const [one, other] = [await nodeWith(OLD, NEW), await nodeWith(NEW, OLD)];
    await expectAccepted(one, other);
    await expectAccepted(other, one);
    await expectFormAccepted(one, other);
    await expectFormAccepted(other, one);
  });

  it('if a node signs with a new key too early, other nodes refuse its tokens, but do not revoke them', async () => {
    const hasty = await nodeWith(NEW, OLD);
    const browser = createPerson(hasty.issuer);
    const token = await connect(hasty, on.seeded, browser);
    const client = on.seeded.clients.confidential;
    expect((await refresh(on.issuer, client, token)).body.error).to.equal('invalid_grant');
    expect(await isSignedIn(browser, on.issuer)).to.equal(false);
    await refreshed(hasty, client, token);
  });
});
