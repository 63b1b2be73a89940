/** `operator reload --dry-run`: what a reload would change, and for how many people. */
import { expect } from 'chai';
import { operatorWith, valueFrom } from '../operator/run-operator.ts';
import { type Overrides, onPostgresAndRedis, type TestService } from '../support/service.ts';
import { providerSettings } from '../support/upstream.ts';

const provider = (id: string) => providerSettings({ id, label: id, issuer: `https://${id}.example` });

onPostgresAndRedis('a dry run of a reload', (start) => {
  const providers = [provider('one'), provider('two')];
  let found: Overrides = {};
  let service: TestService;

  const dryRun = () =>
    valueFrom(operatorWith({ GATEHOUSE_OPERATORS_PORT: new URL(service.operatorsUrl).port }), 'reload --dry-run');
  /** Returns the numbers of people by the first words of the effects. */
  async function impactOf(signIn: Overrides['signIn']): Promise<Record<string, number>> {
    found = signIn ? { signIn } : {};
    const { impact } = await dryRun();
    return Object.fromEntries(
      impact.map(({ effect, people }: { effect: string; people: number }) => [
        effect.replace(/ (sign-in method|sign in with|a passkey).*?(?= provider \w+$|$)/, ''),
        people,
      ]),
    );
  }

  before(async () => {
    service = await start({ settings: { signIn: { providers } }, reloaded: () => found });
    const { accounts, identities, passkeys, database } = service;
    const add = async (name: string, has: { password?: true; links?: readonly string[]; passkey?: true }) => {
      const email = `${name}@example.test`;
      const password = has.password && 'seven green forklifts';
      const { id } = await accounts.add({ email, name, ...(password && { password }) });
      for (const linked of has.links ?? []) {
        const identity = { issuer: `https://${linked}.example`, subject: name };
        await database.transaction((tx) => identities.link(id, identity, tx));
      }
      if (has.passkey) {
        const keys = { credentialId: name, publicKey: '', transports: [], counter: 0 };
        const challenge = { text: name, seconds: 1 };
        const origin = { address: '', browser: '' };
        const synced = { maySync: true, isSynced: true };
        const names = { accountId: id, name: 'Phone', requireMayAdd: async () => {} };
        await passkeys.add({ ...names, ...keys, ...synced, challenge, origin });
      }
      return id;
    };
    await add('password', { password: true });
    await add('password-one', { password: true, links: ['one'] });
    await add('one', { links: ['one'] });
    await add('both', { links: ['one', 'two'] });
    await add('one-passkey', { links: ['one'], passkey: true });
    await add('none', {});
    const suspended = await add('suspended', { links: ['one'] });
    await accounts.suspend(suspended);
    const owner = await add('owner', { password: true });
    const organization = await service.organizations.add({ name: 'Storm' });
    await database.query(
      `INSERT INTO organization_memberships (account_id, organization_id, role, created_at)
        VALUES ($1, $2, 'owner', now())`,
      [owner, organization.id],
    );
  });

  it('a dry run counts exactly the people who lose a sign-in method', async () => {
    const [, two] = providers;
    expect(await impactOf({ providers: two ? [two] : [] })).to.deep.equal({
      'have no': 1,
      'can no longer provider one': 4,
    });
    expect(await impactOf({ passwords: false })).to.deep.equal({
      'have no': 2,
      'can no longer': 3,
    });
    expect(await impactOf({ passwords: false, providers: two ? [two] : [] })).to.deep.equal({
      'have no': 4,
      'can no longer provider one': 4,
      'can no longer': 3,
    });
    expect(await impactOf({ require: 'passkey-or-upstream' })).to.deep.equal({ 'must add': 1 });
    const strict = { require: 'passkey-or-upstream' } as const;
    await service.apply({ ...service.settings, signIn: { ...service.settings.signIn, ...strict } });
    expect(await impactOf(strict), 'the same people must add one before').to.deep.equal({});
    await service.apply(service.settings);
  });

  it('a dry run uses the words of a reload, and changes nothing', async () => {
    found = { tokens: { accessTokenSeconds: 60 }, server: { reusePort: true } };
    const expected = {
      changed: ['tokens.access_token'],
      needs_restart: ['server.reuse_port'],
      values: { 'tokens.access_token': ['1h', '1m'], 'server.reuse_port': ['false', 'true'] },
    };
    expect(await dryRun()).to.deep.equal({ ...expected, impact: [] });
    expect(await dryRun()).to.deep.equal({ ...expected, impact: [] });
    const operator = operatorWith({
      GATEHOUSE_OPERATORS_PORT: new URL(service.operatorsUrl).port,
    });
    expect((await operator('reload --dry-run')).output).to.equal(
      'Dry run, nothing was reloaded. After a reload:\nNow in force: tokens.access_token\n' +
        'Takes effect at the next start: server.reuse_port\n' +
        'tokens.access_token: 1h → 1m\nserver.reuse_port: false → true\n',
    );
    const rows = await service.database.query('SELECT FROM lasting_numbers WHERE reload_number > 0');
    expect(rows).to.deep.equal([]);
    const [node] = await service.database.query<{ json: { reload: object } }>(
      'SELECT runs_with AS json FROM node_keys',
    );
    expect(node?.json.reload).to.deep.equal({ request: 0 });
  });

  it('a dry run shows no secret: neither keys, nor passwords in URLs, nor the secret of a provider', async () => {
    const SECRET = 'CORRECT-horse-battery';
    const [one] = providers;
    found = {
      secrets: { tokenKeys: [SECRET.padEnd(40, 'x')] },
      mail: { smtpUrl: `smtp://gate:${SECRET}@mail.example.test`, from: 'Gate <gate@example.test>' },
      storage: { redisUrl: `redis://:${SECRET}@127.0.0.1:1` },
      signIn: { providers: one ? [{ ...one, clientSecret: SECRET }] : [] },
    };
    const operator = operatorWith({ GATEHOUSE_OPERATORS_PORT: new URL(service.operatorsUrl).port });
    const { output } = await operator('reload --dry-run');
    expect(output).to.contain('GATEHOUSE_TOKEN_KEYS').and.contain('sign_in.providers').and.contain('mail.smtp_url');
    expect(output).to.contain('mail.smtp_url: none → smtp://gate:***@mail.example.test');
    const { values } = await dryRun();
    expect(values).not.to.include.keys('GATEHOUSE_TOKEN_KEYS', 'sign_in.providers');
    expect(output + JSON.stringify(values)).not.to.contain(SECRET);
  });
});
