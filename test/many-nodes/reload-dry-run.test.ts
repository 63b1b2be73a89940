/** `operator reload --dry-run`: what a reload would change. */
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
  before(async () => {
    service = await start({ settings: { signIn: { providers } }, reloaded: () => found });
  });

  it('a dry run uses the words of a reload, and changes nothing', async () => {
    found = { tokens: { accessTokenSeconds: 60 }, server: { reusePort: true } };
    const expected = {
      changed: ['tokens.access_token'],
      needs_restart: ['server.reuse_port'],
      values: { 'tokens.access_token': ['1h', '1m'], 'server.reuse_port': ['false', 'true'] },
    };
    expect(await dryRun()).to.deep.equal(expected);
    expect(await dryRun()).to.deep.equal(expected);
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
