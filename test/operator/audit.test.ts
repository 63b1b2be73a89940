import { expect } from 'chai';
import { createActivity } from '../../src/accounts/activity/activity.ts';
import { setUpOperator } from './operator-suite.ts';

describe('operator audit', () => {
  const { run, value, refusal, parts } = setUpOperator();
  let accountId: string;
  const audit = (options: string) => value(`audit ${options}`);

  before(async () => {
    ({ id: accountId } = await value('accounts add --email ada@example.test --name Ada --invite'));
    const activity = createActivity(parts());
    await activity.record({
      action: 'signed_in',
      actor: 'person',
      accountId,
      origin: { address: '192.0.2.7', browser: 'Firefox' },
    });
    await activity.record({
      action: 'tokens_revoked',
      actor: 'service',
      accountId,
      details: { client_id: 'gate_ci_a', client_name: 'Acme', cause: 'code_replayed' },
    });
  });

  it('`audit --json` prints one array with all fields but no secrets', async () => {
    const [record] = await audit('--client gate_ci_a');
    expect(record).to.deep.include({
      account_id: accountId,
      email: 'ada@example.test',
      address: null,
      browser: null,
      actor: 'service',
      action: 'tokens_revoked',
      what: 'Authorization ended',
      details: { client_id: 'gate_ci_a', client_name: 'Acme', cause: 'code_replayed' },
    });
    const recent = await audit('--account ada@example.test --since 1h');
    expect(recent.map(({ action }: { action: string }) => action)).to.deep.equal([
      'tokens_revoked',
      'signed_in',
      'password_link_made',
      'account_added',
    ]);
    expect(await audit('--until 2020-01-01')).to.deep.equal([]);
    expect(await audit(`--actor operator --before ${record.id}`)).to.have.length(2);
    const { code } = await refusal('audit --account nobody@example.test');
    expect(code).to.equal('account_unknown');
  });

  it('`audit` replaces control characters in the recorded values that it prints', async () => {
    const activity = createActivity(parts());
    await activity.record({
      action: 'signed_in',
      actor: 'person',
      accountId,
      origin: { address: '\u001b[2J\u202e::1\n', browser: 'x' },
    });
    const { output } = await run('audit --limit 1');
    expect(output).to.match(/\uFFFD\[2J\uFFFD::1\uFFFD\n/);
    expect(output.replaceAll('\n', '')).not.to.match(/\p{C}/u);
    const [record] = await audit('--limit 1');
    expect(record.address).to.equal('\u001b[2J\u202e::1\n');
  });
});
