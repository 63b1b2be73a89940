/** The patches of the engine: each is of the version that is installed, and still needed there. */
import { generateKeyPairSync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { expect } from 'chai';
import { type Configuration, Provider } from 'oidc-provider';
import { ENGINE_VERSION, OVERRIDES } from '../../src/provider/engine-overrides.ts';

const REDIRECT_URI = 'https://partner.example/callback';

/** What the engine keeps, by `model id`. */
const kept = new Map<string, object>();

class KeepingAdapter {
  readonly model: string;
  constructor(model: string) {
    this.model = model;
  }
  async upsert(id: string, payload: object): Promise<void> {
    kept.set(`${this.model} ${id}`, payload);
  }
  async find(id: string): Promise<object | undefined> {
    return this.model === 'Client' ? metadata(id) : kept.get(`${this.model} ${id}`);
  }
  async destroy(id: string): Promise<void> {
    kept.delete(`${this.model} ${id}`);
  }
}

const metadata = (id: string) => ({
  client_id: id,
  client_secret: 'in clear',
  redirect_uris: [REDIRECT_URI],
});

const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });

/** The engine as it comes, in which nothing is replaced. */
const stock = new Provider('http://localhost', {
  adapter: KeepingAdapter as unknown as NonNullable<Configuration['adapter']>,
  features: { devInteractions: { enabled: false } },
  cookies: { keys: ['k'] },
  jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), use: 'sig' }] },
  clientDefaults: { id_token_signed_response_alg: 'ES256' },
  // biome-ignore lint/suspicious/noExplicitAny: the types leave out most of what is replaced.
}) as any;

/** By member, what the engine does by itself: where it no longer does, the patch has no reason. */
const REASONS: Readonly<Record<string, () => unknown>> = {
  async 'Client.find'() {
    const first = await stock.Client.find('first');
    expect(await stock.Client.find('first')).to.equal(first);
    for (let other = 0; other < 201; other += 1) await stock.Client.find(`other-${other}`);
    expect(await stock.Client.find('first'), 'forgets it among many').not.to.equal(first);
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
    kept.clear();
    await session.save(60);
    expect([...kept.keys()], 'brings it back').to.deep.equal([`Session ${session.jti}`]);
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
    expect(kept.has(`AuthorizationCode ${value}`), 'a record of its own').to.equal(true);
  },
  'Grant.prototype.getOIDCScopeFiltered'() {
    expect(new stock.Grant().getOIDCScopeFiltered(new Set()), 'grants none').to.equal('');
  },
  registerResponseMode() {
    expect(stock.registerResponseMode('refusal', () => {})).to.equal(undefined);
  },
};

describe('what is replaced in the engine', () => {
  it('is of the version that is installed: with another, read the list in engine-overrides.ts', () => {
    const { version } = createRequire(import.meta.url)('oidc-provider/package.json');
    expect(version).to.equal(ENGINE_VERSION);
  });

  it('is what the reasons are about', () => {
    const members = OVERRIDES.map(({ member }) => member);
    expect(Object.keys(REASONS)).to.have.members(members);
    expect(new Set(members).size).to.equal(members.length);
  });

  for (const { member, test } of OVERRIDES) {
    it(`${member}: the engine still needs it, and a test notices`, async () => {
      await REASONS[member]?.();
      const [file, title] = test;
      const text = readFileSync(new URL(file, import.meta.url), 'utf8');
      expect(text.split(title)).to.have.length(2);
    });
  }
});
