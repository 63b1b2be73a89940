import { PassThrough } from 'node:stream';
import { expect } from 'chai';
import { createActivity } from '../../src/accounts/activity/activity.ts';
import { createApiKeys } from '../../src/accounts/api-keys/api-keys.ts';
import { runOperator } from '../../src/operator/program/run-operator.ts';
import { setUpOperator } from './operator-suite.ts';
import { createPage, operatorWith, variablesOf } from './run-operator.ts';

describe('operator commands ask for confirmation before irreversible changes', () => {
  const { run, value, refusal, parts } = setUpOperator();
  let id: string;

  before(async () => {
    ({ id } = await value('clients add --kind machine --name Robot'));
  });

  type Typed = string | undefined | (() => Promise<string>);
  /** Types the next of these texts at each question; `undefined` closes the terminal. */
  async function onTerminal(line: string, ...typed: readonly Typed[]) {
    const stdin = Object.assign(new PassThrough(), { isTTY: true });
    const rest = [...typed];
    const stderr = createPage((text) => {
      if (!/: $/.test(text) || rest.length === 0) return;
      const given = rest.shift();
      setImmediate(async () => {
        const next = typeof given === 'function' ? await given() : given;
        if (next === undefined) stdin.end();
        else stdin.write(next);
      });
    });
    const terminal = { stdin, stderr: Object.assign(stderr, { isTTY: true }) };
    const run = operatorWith(variablesOf(parts().database), (all, more) => runOperator(all, { ...more, ...terminal }));
    return { ...(await run(line)), errors: stderr.text() };
  }
  const isThere = async () => (await value('clients list')).length === 1;

  it('an irreversible command without a terminal is refused and changes nothing', async () => {
    // A "yes" on standard input does not count either: only --yes shows that it was meant.
    expect(await refusal(`clients delete ${id}`, 'yes\n')).to.deep.equal({
      code: 'confirmation_needed',
      message: 'Deletes Robot and disconnects the 0 people who use it. This cannot be undone.',
      remedy: 'Add --yes.',
    });
    expect(await isThere()).to.equal(true);
  });

  it('only the answer "yes" confirms an irreversible command', async () => {
    for (const no of ['n\n', 'y\n', '\n', 'YES\n', '\x04', '\x03', undefined]) {
      const { exitCode, errors } = await onTerminal(`clients delete ${id}`, no);
      expect(exitCode, `${no}`).to.equal(1);
      expect(errors).to.contain('Nothing was changed.');
    }
    expect(await isThere()).to.equal(true);
    const deleted = await onTerminal(`clients delete ${id} --json`, ' yes \n');
    expect(deleted.exitCode).to.equal(0);
    expect(JSON.parse(deleted.output)).to.include({ deleted: true });
    expect(await isThere()).to.equal(false);
  });

  it('`revoke` also ends an API key that was created while the command waited for confirmation', async () => {
    const { account_id: accountId } = await value(
      'accounts add --email eve@example.test --name Eve --generate-password',
    );
    const keys = createApiKeys({ ...parts(), activity: createActivity(parts()) });
    const { exitCode } = await onTerminal(`revoke --account ${accountId}`, async () => {
      const origin = { address: '192.0.2.9', browser: 'Firefox' };
      await keys.add({ accountId, name: 'Meanwhile', expiresInDays: undefined }, origin);
      return 'yes\n';
    });
    expect(exitCode).to.equal(0);
    expect(await keys.listOf(accountId)).to.deep.equal([]);
    await value(`accounts delete ${accountId} --yes`);
  });

  it('`accounts add` adds no account if the repeated password differs or none is typed', async () => {
    const add = 'accounts add --email ada@example.test --name Ada';
    const typed = 'seven green forklifts\n';
    for (const [second, problem] of [
      ['seven green forklift\n', 'the two passwords do not match'],
      ['\x03', 'nothing was entered'],
    ] as const) {
      const { exitCode, errors } = await onTerminal(add, typed, second);
      expect(exitCode).to.equal(2);
      expect(errors).to.contain(problem).and.not.contain('forklift');
    }
    expect((await run('accounts list')).output).to.equal('There are no accounts.\n');
  });
});
