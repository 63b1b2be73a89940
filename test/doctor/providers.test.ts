/** The doctor checks our client at a provider, without signing in. */
import { expect } from 'chai';
import { providerVerdicts } from '../../src/doctor/servers.ts';
import { freePort } from '../support/programs.ts';
import { startUpstream, type Upstream } from '../support/upstream.ts';

const OURS = 'http://localhost:1';

describe('operator doctor, checking a provider', () => {
  let upstream: Upstream;
  before(async () => {
    upstream = await startUpstream(OURS);
  });

  async function findingOf(
    changes: Parameters<Upstream['settings']>[0] = {},
    problems: Parameters<typeof providerVerdicts>[1]['problems'] = [],
  ) {
    const providers = [upstream.settings(changes)];
    const verdicts = await providerVerdicts(OURS, { providers, problems });
    expect(verdicts).to.have.length(1);
    return verdicts[0];
  }

  it('the doctor accepts a provider with the right client ID and secret, and names our redirect URI', async () => {
    const found = await findingOf();
    expect(found).to.include({ status: 'ok' });
    expect(found?.message).to.contain(`the redirect URI ${OURS}/login/platform/callback`);
  });

  it('the doctor detects a wrong client ID or client secret at a provider', async () => {
    for (const wrong of [{ clientSecret: 'another-secret' }, { clientId: 'another' }]) {
      const found = await findingOf(wrong);
      expect(found).to.include({ status: 'problem', where: 'sign_in.providers.0' });
      expect(found?.message).to.contain('does not accept our client ID or secret');
      expect(JSON.stringify(found)).not.to.contain('another-secret');
    }
  });

  it('the doctor detects a provider that is unavailable, has another issuer, or has keys on another host', async () => {
    const away = await findingOf({ issuer: `http://127.0.0.1:${await freePort()}` });
    expect(away?.message).to.match(/^the provider platform cannot be used .*ECONNREFUSED/);
    expect(away).to.have.property('remedy').that.contains('can connect to the provider');
    const slash = await findingOf({ issuer: `${upstream.issuer}/` });
    expect(slash?.message).to.match(/^the provider platform cannot be used/);
    upstream.changes.set('/.well-known/openid-configuration', (ctx) => {
      ctx.body = { ...(ctx.body as object), jwks_uri: 'https://keys.example.test/jwks' };
    });
    const elsewhere = await findingOf();
    upstream.changes.clear();
    expect(elsewhere?.message).to.include('endpoint_hosts: [keys.example.test]');
    for (const found of [away, slash, elsewhere]) expect(found?.status).to.equal('problem');
  });

  it('the doctor warns that it did not try the client secret if it cannot read the file', async () => {
    const path = 'sign_in.providers.0.client_secret_file';
    const unread = [{ path, message: 'cannot be read', remedy: 'make it readable' }];
    const found = await findingOf({ clientSecret: 'unread' }, unread);
    expect(found).to.include({ status: 'warning', where: path, remedy: 'make it readable' });
    expect(found?.message).to.contain('platform was not asked');
    const providers = [upstream.settings({ clientSecret: 'unread' }), upstream.settings()];
    const both = await providerVerdicts(OURS, { providers, problems: unread });
    expect(both.map(({ status }) => status)).to.deep.equal(['warning', 'ok']);
  });
});
