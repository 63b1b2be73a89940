import { expect } from 'chai';
import { introspect, postForm, revokeCurrent } from '../support/oauth.ts';
import { startSeeded } from '../support/seeded.ts';

const DAY = 86_400;
const INACTIVE = { active: false };
const origin = { address: '203.0.113.7', browser: 'curl/8.5.0' };

describe('API keys at the OAuth endpoints', () => {
  const on = startSeeded({ clock: true });
  let value: string;

  beforeEach(async () => {
    await on.service.database.query('DELETE FROM api_keys');
    const draft = { accountId: on.seeded.person.accountId, name: 'Export', expiresInDays: 30 };
    ({ value } = await on.service.apiKeys.add(draft, origin));
  });

  const ask = async (presented = value, client = on.clients.resourceServer) =>
    (await introspect(on.issuer, client, presented)).body;

  it('introspection of an API key by a client that is not a resource server returns only {"active": false}', async () => {
    const { confidential, machine } = on.clients;
    for (const client of [confidential, machine]) {
      expect(await ask(value, client)).to.deep.equal(INACTIVE);
    }
  });

  it('introspection reports an API key as active until the second in which it expires', async () => {
    on.clock.advance(30 * DAY - 1);
    expect(await ask()).to.include({ active: true });
    on.clock.advance(1);
    expect(await ask()).to.deep.equal(INACTIVE);
  });

  it('an API key cannot revoke a token, and cannot be revoked at the revocation endpoints', async () => {
    const current = await revokeCurrent(on.issuer, value);
    expect(current.status).to.equal(401);
    expect(current.body).to.include({ error: 'invalid_token' });
    expect(current.body.error_description).to.include('profile page');
    expect(current.headers.get('www-authenticate')).to.match(/^Bearer error="invalid_token"/);
    const { confidential } = on.clients;
    const standard = await postForm(
      ...([on.issuer, '/oauth/revoke', { token: value }, { client: confidential }] as const),
    );
    expect(standard.status).to.equal(200);
    expect(await ask()).to.include({ active: true });
  });

  it('an API key is refused as a refresh token', async () => {
    const { confidential } = on.clients;
    const parameters = { grant_type: 'refresh_token', refresh_token: value };
    const answer = await postForm(on.issuer, '/oauth/token', parameters, {
      client: confidential,
    });
    expect(answer.body).to.include({ error: 'invalid_grant' });
    expect(on.service.logLines.join()).not.to.include(value);
  });
});
