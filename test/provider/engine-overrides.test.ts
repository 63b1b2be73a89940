/** The overrides of oidc-provider are for the installed version, which still needs them. */
import { generateKeyPairSync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { expect } from 'chai';
import { type Configuration, Provider } from 'oidc-provider';
import { ENGINE_VERSION, OVERRIDES } from '../../src/provider/engine-overrides.ts';

const REDIRECT_URI = 'https://partner.example/callback';

/** The records that the engine stores, keyed by `model id`. */
const records = new Map<string, object>();

class MemoryAdapter {
  readonly model: string;
  constructor(model: string) {
    this.model = model;
  }
  async upsert(id: string, payload: object): Promise<void> {
    records.set(`${this.model} ${id}`, payload);
  }
  async find(id: string): Promise<object | undefined> {
    return this.model === 'Client' ? metadata(id) : records.get(`${this.model} ${id}`);
  }
  async destroy(id: string): Promise<void> {
    records.delete(`${this.model} ${id}`);
  }
}

const metadata = (id: string) => ({
  client_id: id,
  client_secret: 'in clear',
  redirect_uris: [REDIRECT_URI],
});

const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });

/** The engine without overrides. */
const stock = new Provider('http://localhost', {
  adapter: MemoryAdapter as unknown as NonNullable<Configuration['adapter']>,
  features: { devInteractions: { enabled: false } },
  cookies: { keys: ['k'] },
  jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), use: 'sig' }] },
  clientDefaults: { id_token_signed_response_alg: 'ES256' },
  // biome-ignore lint/suspicious/noExplicitAny: the types omit most of the members tested here.
}) as any;

/**
 * Checks of the engine's own behavior, keyed by member: if a check fails, the override of that
 * member may be unneeded.
 */
const REASONS: Readonly<Record<string, () => unknown>> = {
  async 'Client.find'() {
    const first = await stock.Client.find('first');
    expect(await stock.Client.find('first')).to.equal(first);
    for (let other = 0; other < 201; other += 1) await stock.Client.find(`other-${other}`);
    expect(await stock.Client.find('first'), 'the engine evicts a client after 201 others').not.to.equal(first);
  },
  async 'Client.prototype.redirectUriAllowed'() {
    const client = await stock.Client.find('first');
    expect(client.redirectUriAllowed(REDIRECT_URI)).to.equal(true);
    expect(client.redirectUriAllowed(`${REDIRECT_URI}/test`)).to.equal(false);
  },
  async 'Client.prototype.responseModeAllowed'() {
    const client = await stock.Client.find('first');
    expect(client.responseModeAllowed('fragment', 'code')).to.equal(true);
  },
  async 'Session.prototype.save'() {
    const session = new stock.Session();
    await session.save(60);
    records.clear();
    await session.save(60);
    expect([...records.keys()], 'the engine writes the session again').to.deep.equal([`Session ${session.jti}`]);
  },
  'Session.prototype.resetIdentifier'() {
    const session = new stock.Session();
    const { jti } = session;
    session.resetIdentifier();
    expect(session.jti).not.to.equal(jti);
  },
  async 'AuthorizationCode.prototype.save'() {
    const client = await stock.Client.find('first');
    const value = await new stock.AuthorizationCode({ client, accountId: 'a' }).save(60);
    expect(records.has(`AuthorizationCode ${value}`), 'the engine stores a separate record for the code').to.equal(
      true,
    );
  },
  'Grant.prototype.getOIDCScopeFiltered'() {
    expect(new stock.Grant().getOIDCScopeFiltered(new Set()), 'the engine grants no scope').to.equal('');
  },
  registerResponseMode() {
    expect(stock.registerResponseMode('refusal', () => {})).to.equal(undefined);
  },
};

describe('the overrides of oidc-provider', () => {
  it('the overrides of oidc-provider are for the installed version (after an upgrade, check each)', () => {
    const { version } = createRequire(import.meta.url)('oidc-provider/package.json');
    expect(version).to.equal(ENGINE_VERSION);
  });

  it('this file tests the reason of every override of oidc-provider, and no other reasons', () => {
    const members = OVERRIDES.map(({ member }) => member);
    expect(Object.keys(REASONS)).to.have.members(members);
    expect(new Set(members).size).to.equal(members.length);
  });

  for (const { member, test } of OVERRIDES) {
    it(`the override of ${member} is still needed, and its test exists`, async () => {
      await REASONS[member]?.();
      const [file, title] = test;
      const text = readFileSync(new URL(file, import.meta.url), 'utf8');
      expect(text.split(title)).to.have.length(2);
    });
  }
});
