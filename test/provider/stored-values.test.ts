/** A stolen copy of the stores is useless, as it contains no token, code, secret or cookie. */
import { expect } from 'chai';
import { Redis } from 'ioredis';
import { authorizationUrl, clientCredentials, exchangeCode, pkce, refresh } from '../support/oauth.ts';
import { createPerson } from '../support/person.ts';
import { type Seed, seed } from '../support/seed.ts';
import { forEachDeployment, type TestService } from '../support/service.ts';
import { partnerTokens, tokensOf } from './partner-tokens.ts';

forEachDeployment('a copy of the stores', (start) => {
  let service: TestService;
  let seeded: Seed;

  before(async () => {
    service = await start();
    seeded = await seed(service);
  });

  async function dump(): Promise<string> {
    const { redisUrl } = service.settings.storage;
    return (await databaseDump()) + (redisUrl === undefined ? '' : await redisDump(redisUrl));
  }

  async function databaseDump(): Promise<string> {
    const tables = await service.database.query<{ name: string }>(
      `SELECT quote_ident(table_name) AS name FROM information_schema.tables
        WHERE table_schema = 'public' AND table_type = 'BASE TABLE'`,
    );
    const rows = tables.map(async ({ name }) => {
      const found = await service.database.query<{ row: string }>(`SELECT t::text AS row FROM ${name} t`);
      return found.map(({ row }) => `${name} ${row}\n`).join('');
    });
    return (await Promise.all(rows)).join('');
  }

  async function redisDump(url: string): Promise<string> {
    const redis = new Redis(url);
    const keys = await redis.keys('*');
    const values = await Promise.all(keys.map((key) => redis.get(key)));
    redis.disconnect();
    return keys.map((key, index) => `${key} ${values[index]}\n`).join('');
  }

  it('a copy of the stores contains the records, but no token, code, secret, cookie, link or password in clear text', async () => {
    const { issuer } = service;
    const { confidential, public: publicClient, machine } = seeded.clients;
    const partner = partnerTokens(issuer, seeded);
    const { verifier, parameters } = pkce();
    const openCode = await partner.code(publicClient, parameters);
    const usedCode = await partner.code(confidential);
    const exchanged = tokensOf(await exchangeCode(issuer, confidential, usedCode));
    const { refreshToken } = exchanged;
    const refreshed = tokensOf(await refresh(issuer, confidential, refreshToken));
    const machineTokens = tokensOf(await clientCredentials(issuer, machine));

    const { accountId } = seeded.person;
    const account = await service.accounts.find(accountId);
    if (!account) throw new Error('no account');
    const draft = { accountId, name: 'Night export', expiresInDays: undefined };
    const origin = { address: '192.0.2.1', browser: 'test' };
    const { value: apiKey } = await service.apiKeys.add(draft, origin);
    const { token: passwordLink } = await service.passwordLinks.make(account, 'forgotten', origin);

    // Start two interactions: one waits for a sign-in, one for the consent of a signed-in user.
    const visitor = createPerson(issuer);
    await visitor.open(authorizationUrl(issuer, confidential));
    const { browser } = partner;
    await browser.open(authorizationUrl(issuer, publicClient, parameters));
    const [session = ''] = /(?<=gate_session=)[^;]+/.exec(browser.cookieHeader('/')) ?? [];

    const values: Record<string, string> = {
      'unused code': openCode,
      'used code': usedCode,
      'code verifier': verifier,
      'access token': exchanged.accessToken,
      'refresh token': refreshToken,
      'next access token': refreshed.accessToken,
      'next refresh token': refreshed.refreshToken,
      'machine access token': machineTokens.accessToken,
      'client secret': confidential.secret ?? '',
      'machine client secret': machine.secret ?? '',
      'session cookie': session,
      'API key': apiKey,
      'password link': passwordLink,
      password: seeded.person.password,
    };
    const stored = await dump();
    for (const record of [confidential.id, seeded.person.accountId, '$argon2id$', 'code_challenge']) {
      expect(stored, 'the dump contains all stores').to.contain(record);
    }
    for (const [name, value] of Object.entries(values)) {
      expect(value, name).to.have.length.above(15);
      expect(stored.includes(value), `the store holds the ${name}`).to.equal(false);
      // The value without its public prefix must not be stored either.
      const random = value.replace(/^gate_[a-z]+_/, '');
      expect(stored.includes(random), `the store holds the ${name} without prefix`).to.equal(false);
    }
  });
});
