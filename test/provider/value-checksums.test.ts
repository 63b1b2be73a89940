/** The checksum at the end of tokens, codes, secrets and API keys, and a stolen copy of the stores, which contains none of them. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { isMadeUp } from '../../modules/node/src/value-checksum.ts';
import { FORMS, withChecksum, withoutChecksum } from '../../src/base/random-id.ts';
import { operatorFor, valueFrom } from '../operator/run-operator.ts';
import { eventually } from '../support/eventually.ts';
import { counted, scrape } from '../support/metrics.ts';
import { authorizationUrl, clientCredentials, exchangeCode, introspect, pkce, refresh } from '../support/oauth.ts';
import { createPerson } from '../support/person.ts';
import { inRedis } from '../support/redis-server.ts';
import { addTestClient, apiKeyOf, passwordLink } from '../support/seed.ts';
import { type Seeded, startSeeded } from '../support/seeded.ts';
import { forEachDeployment, onPostgresAndRedis, type TestService } from '../support/service.ts';
import { granted, tokensOf } from './partner-tokens.ts';

const GUIDE = readFileSync(path.join(import.meta.dirname, '../../docs/partners.md'), 'utf8');
const hasChecksum = (value: string): boolean => withoutChecksum(value) !== '';

/** Changes a character in the middle of the value, and keeps its end. */
const madeUp = (value: string): string => {
  const other = value[40] === 'x' ? 'y' : 'x';
  return value.slice(0, 40) + other + value.slice(41);
};

/** Issues one value of each kind at the node. */
async function issueAll({ clients, partner, seeded }: Seeded, service: TestService) {
  const { issuer } = service;
  const code = await partner.code(clients.confidential);
  const tokens = await granted(exchangeCode(issuer, clients.confidential, code));
  const machine = await granted(clientCredentials(issuer, clients.machine));
  const client = await addTestClient(service, `Partner ${performance.now()}`);
  const { value: apiKey } = await apiKeyOf(service, seeded.person);
  return {
    client,
    values: {
      code: await partner.code(clients.confidential),
      ...tokens,
      machineToken: machine.accessToken,
      secret: client.secret ?? '',
      rotatedSecret: (await service.clients.addSecret(client.id)).secret,
      commandSecret: String((await valueFrom(operatorFor(service), ['clients', 'add', ...ADDED])).client_secret),
      apiKey,
    },
  };
}

const ADDED = ['--kind', 'machine', '--name', 'From a command'];

/** Expects that the node accepts each of the values. */
async function expectAccepted(
  { clients }: Seeded,
  { issuer }: TestService,
  { client, values }: Awaited<ReturnType<typeof issueAll>>,
): Promise<void> {
  for (const token of [values.accessToken, values.machineToken, values.apiKey]) {
    const { body } = await introspect(issuer, clients.resourceServer, token);
    expect(body.active, token).to.equal(true);
  }
  for (const secret of [values.secret, values.rotatedSecret]) {
    const { status } = await introspect(issuer, { ...client, secret, redirectUri: '' }, 'x');
    expect(status).to.equal(200);
  }
  await granted(exchangeCode(issuer, clients.confidential, values.code));
  await granted(refresh(issuer, clients.confidential, values.refreshToken));
}

describe('a token, code, secret or API key with a wrong checksum is refused without reading a store', () => {
  it('the service and the resource-server module compute the checksum of the documented example', () => {
    const example = `gate_key_${'0123456789'.repeat(4)}abc`;
    expect(withChecksum(example)).to.equal(`${example}AUwE0T`);
    expect(isMadeUp(`${example}AUwE0T`)).to.equal(false);
    expect(GUIDE).to.include(`the whole value is\n\`${example}AUwE0T\``);
  });

  it('the documented regular expression finds every kind of value with a checksum, and no other text', () => {
    const [, pattern = ''] = /\n(gate_\(\?:.*)\n/.exec(GUIDE) ?? [];
    const scanner = new RegExp(pattern);
    for (const { prefix, minLength, maxLength } of Object.values(FORMS)) {
      for (const length of [minLength, maxLength]) {
        const bare = prefix + 'x'.repeat(length);
        const isSecret = prefix !== 'gate_ci_';
        expect(scanner.test(`key="${withChecksum(bare)}"`), bare).to.equal(isSecret);
        expect(scanner.test(bare), bare).to.equal(false);
        expect(scanner.test(`${withChecksum(bare)}xxxxxxxx`), bare).to.equal(false);
      }
    }
  });

  it('the service and the resource-server module agree on every checksum', () => {
    for (let length = 0; length < 500; length += 1) {
      const text = `${length}-_${'aZ'.repeat(length)}`.padEnd(89, '0').slice(-89);
      const value = withChecksum(`gate_at_${text}`);
      expect(value.at(-6)).to.be.oneOf(['A', 'B', 'C', 'D']);
      expect(isMadeUp(value), value).to.equal(false);
      expect(isMadeUp(`${value.slice(0, -1)}${value.endsWith('A') ? 'B' : 'A'}`)).to.equal(true);
    }
  });
});

onPostgresAndRedis('issued values', (start) => {
  const on = startSeeded({ on: start });

  it('each kind of issued value has a checksum and can be used', async () => {
    const issued = await issueAll(on, on.service);
    for (const [kind, value] of Object.entries(issued.values)) {
      expect(hasChecksum(value), `${kind} ${value}`).to.equal(true);
    }
    await expectAccepted(on, on.service, issued);
  });

  it('an issued value is refused if its checksum is missing', async () => {
    const { client, values } = await issueAll(on, on.service);
    const { resourceServer, confidential } = on.clients;
    for (const value of [values.accessToken, values.machineToken, values.apiKey]) {
      const { body } = await introspect(on.issuer, resourceServer, withoutChecksum(value));
      expect(body, value).to.deep.equal({ active: false });
    }
    const renewed = await refresh(on.issuer, confidential, withoutChecksum(values.refreshToken));
    const exchanged = await exchangeCode(on.issuer, confidential, withoutChecksum(values.code));
    expect([renewed.body.error, exchanged.body.error]).to.deep.equal(Array(2).fill('invalid_grant'));
    const secret = withoutChecksum(values.secret);
    expect((await introspect(on.issuer, { ...client, secret, redirectUri: '' }, 'x')).status).to.equal(401);
    await expectAccepted(on, on.service, { client, values });
  });

  it('a value with a wrong checksum is refused without reading a store', async () => {
    const { values } = await issueAll(on, on.service);
    const { resourceServer, confidential } = on.clients;
    let scrapes = 0;
    const operations = async () => {
      const name = 'gatehouse_store_operation_duration_seconds_count';
      const all = Object.entries(counted(await scrape(on.service), name));
      scrapes += 1;
      // Each scrape sends a query of its own, about the connections.
      return all.flatMap(([labels, count]) => {
        if (labels.includes('read')) return [[labels, count] as const];
        return labels.includes('query') ? [[labels, count - scrapes] as const] : [];
      });
    };
    // Repeat it, because background work may query during one attempt.
    await eventually(async () => {
      const before = await operations();
      for (const value of [values.accessToken, values.machineToken, values.apiKey]) {
        const { body } = await introspect(on.issuer, resourceServer, madeUp(value));
        expect(body).to.deep.equal({ active: false });
      }
      expect(await operations()).to.deep.equal(before);
    });
    const reads = async () => (await operations()).filter(([labels]) => labels.includes('readAuthorization'));
    const before = await reads();
    const renewed = await refresh(on.issuer, confidential, madeUp(values.refreshToken));
    const exchanged = await exchangeCode(on.issuer, confidential, madeUp(values.code));
    expect([renewed.body.error, exchanged.body.error]).to.deep.equal(Array(2).fill('invalid_grant'));
    expect(before.length).to.equal(1);
    expect(await reads()).to.deep.equal(before);
  });
});

forEachDeployment('a copy of the stores', (start) => {
  const on = startSeeded({ on: start });

  async function dump(): Promise<string> {
    const { redisUrl } = on.service.settings.storage;
    return (await databaseDump()) + (redisUrl === undefined ? '' : await redisDump(redisUrl));
  }

  async function databaseDump(): Promise<string> {
    const tables = await on.service.database.query<{ name: string }>(
      `SELECT quote_ident(table_name) AS name FROM information_schema.tables
        WHERE table_schema = 'public' AND table_type = 'BASE TABLE'`,
    );
    const rows = tables.map(async ({ name }) => {
      const found = await on.service.database.query<{ row: string }>(`SELECT t::text AS row FROM ${name} t`);
      return found.map(({ row }) => `${name} ${row}\n`).join('');
    });
    return (await Promise.all(rows)).join('');
  }

  const redisDump = (url: string): Promise<string> =>
    inRedis(url, async (redis) => {
      const lines = (await redis.keys('*')).map(async (key) => `${key} ${await redis.get(key)}\n`);
      return (await Promise.all(lines)).join('');
    });

  it('a copy of the stores contains the records, but no token, code, secret, cookie, link or password in clear text', async () => {
    const { issuer, partner, seeded } = on;
    const { confidential, public: publicClient, machine } = on.clients;
    const { verifier, parameters } = pkce();
    const openCode = await partner.code(publicClient, parameters);
    const usedCode = await partner.code(confidential);
    const exchanged = tokensOf(await exchangeCode(issuer, confidential, usedCode));
    const { refreshToken } = exchanged;
    const refreshed = tokensOf(await refresh(issuer, confidential, refreshToken));
    const machineTokens = tokensOf(await clientCredentials(issuer, machine));

    const { value: apiKey } = await apiKeyOf(on.service, seeded.person);
    const [, token = ''] = (await passwordLink(on.service, seeded.person)).split('token=');

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
      'password link': token,
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
