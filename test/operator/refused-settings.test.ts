/** Commands while the settings file is refused. */
import { expect } from 'chai';
import { fileWith, keysOfEnvironment } from '../config/configuration.ts';
import { describeOn, postgresServer } from '../support/requirements.ts';
import { startSeeded } from '../support/seeded.ts';
import { keysOf, operatorWith, storesOf, valueFrom } from './run-operator.ts';

describeOn([postgresServer], 'commands while the settings file is refused', () => {
  const on = startSeeded({ on: 'postgres' });
  /** The default settings lack `mail.from`, which the mail server of the environment needs. */
  const file = fileWith('{log: {levle: warn}, mail: {from: a@b.test}}', 'refused.yaml');
  const machine = { GATEHOUSE_CONFIG: file, SMTP_URL: 'smtp://localhost:1', ...keysOfEnvironment };
  const withRefusedFile = (environment: Readonly<Record<string, string>>) =>
    operatorWith({ ...machine, ...environment });

  it('if the settings file is refused, commands that read or revoke use defaults and the environment, and warn', async () => {
    const run = withRefusedFile(storesOf(on.service));
    const { email } = on.seeded.person;
    for (const words of ['accounts list', 'nodes', `show ${email}`, `sessions end --account ${email} --yes`]) {
      const { exitCode, errors } = await run(words);
      expect(exitCode, words + errors).to.equal(0);
      expect(errors, words).to.contain(`${file} is refused`).and.contain('default settings');
      expect(errors, words).not.to.contain('localhost:3000');
    }
    const { error } = await valueFrom(run, ['organizations', 'add', '--name', 'Harbour'], { exitCode: 3 });
    expect(error.problems[0].path).to.equal('log.levle');
  });

  it('a command names each wrong environment variable, and names the settings file only if the file is wrong', async () => {
    const GATEHOUSE_CONFIG = fileWith('{mail: {from: a@b.test}}', 'right.yaml');
    const wrong = { ...storesOf(on.service), GATEHOUSE_CONFIG, GATEHOUSE_ISSUER: 'http://auth.example.test' };
    const { exitCode, errors } = await withRefusedFile(wrong)(`revoke --account ${on.seeded.person.email} --yes`);
    expect(exitCode, errors).to.equal(3);
    expect(errors).to.contain('GATEHOUSE_ISSUER').and.not.contain('is refused');
    const both = await withRefusedFile({ ...wrong, GATEHOUSE_CONFIG: file })('accounts list');
    expect(both.exitCode, both.errors).to.equal(3);
    expect(both.errors).to.contain('GATEHOUSE_ISSUER').and.contain('log.levle').and.not.contain('default settings');
  });

  it('a command without REDIS_URL never reports a token as inactive if nodes use Redis, with any settings file', async () => {
    const { accessToken } = await on.partner.tokens(on.clients.confidential);
    const environment = { ...storesOf(on.service), ...keysOf(on.service) };
    const answersOn = async (redis: string, run = withRefusedFile(environment)) => {
      // Another node: the one that runs here writes its own row again at each heartbeat.
      await on.service.database.query(`DELETE FROM node_keys WHERE node = 'another'`);
      await on.service.database.query(`INSERT INTO node_keys
        SELECT 'another', seen_at, noted_at, cookie_keys, token_keys, state, ready_since,
          runs_with || '{"redis": "${redis}"}' FROM node_keys`);
      const one = await run(['show', accessToken, '--json']);
      const several = await run(['show', `${accessToken} ${on.seeded.person.email}`, '--json']);
      const revoked = await run(['revoke', '--token', '-', '--json'], accessToken);
      return [one, several, revoked].map(({ output }) => JSON.parse(output));
    };
    const [one, several, revoked] = await answersOn('an-id');
    expect([one.error.code, revoked.error.code]).to.deep.equal(['redis_unknown', 'redis_unknown']);
    expect(revoked.error.remedy).to.contain('REDIS_URL').and.contain('if it has none').and.contain('--account');
    expect(several.map(({ state }: { state: string }) => state)).to.deep.equal(['not_answered', 'active']);
    expect(several[0].remedy).to.contain('REDIS_URL');
    const another = operatorWith({ ...environment, GATEHOUSE_CONFIG: fileWith('{}', 'another.yaml') });
    const withAnother = await answersOn('an-id', another);
    expect([withAnother[0].error.code, withAnother[2].error.code]).to.deep.equal(['redis_unknown', 'redis_unknown']);
    const [known, , ended] = await answersOn('none');
    expect(known[0].state).to.equal('active');
    expect(ended).to.include({ revoked: true });
  });

  it('without a database in the environment, commands report the problems of the settings file', async () => {
    const { error } = await valueFrom(withRefusedFile({}), 'accounts list', { exitCode: 3 });
    expect(error.problems.map((one: { path: string }) => one.path)).to.deep.equal(['log.levle']);
  });

  it('a command exits with 2 if only the database setting is missing, and with 3 if a setting is invalid', async () => {
    const GATEHOUSE_CONFIG = fileWith('{storage: {data_directory: off}}', 'off.yaml');
    for (const words of ['accounts list', `accounts suspend ${on.seeded.person.email}`]) {
      const { error } = await valueFrom(operatorWith({ GATEHOUSE_CONFIG }), words, { exitCode: 2 });
      expect(error.problems.map((one: { path: string }) => one.path)).to.deep.equal(['storage.database_url']);
    }
    const misspelled = fileWith('{storage: {data_directory: off}, log: {levle: warn}}', 'misspelled.yaml');
    await valueFrom(operatorWith({ GATEHOUSE_CONFIG: misspelled }), ['accounts', 'list'], { exitCode: 3 });
  });
});
