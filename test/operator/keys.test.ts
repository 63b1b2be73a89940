import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, statSync, symlinkSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { createSecretFile } from '../../src/operator/command/secret-file.ts';
import { keyFingerprint, startHeartbeat } from '../../src/storage/heartbeat.ts';
import { READY_NODE } from '../support/ready-node.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { setUpOperator } from './operator-suite.ts';
import { expectWrongUsage, operatorWith, valueFrom, variablesOf } from './run-operator.ts';

const OLD = 'an-old-key-of-the-tests-0123456789abcdef';
const NEW = 'a-new-key-of-the-tests-0123456789abcdefg';

describe('operator keys', () => {
  const { refusal, parts } = setUpOperator();
  beforeEach(async () => {
    await parts().database.query('DELETE FROM node_keys');
  });

  const operator = (...keys: string[]) =>
    operatorWith({
      ...variablesOf(parts().database),
      GATEHOUSE_COOKIE_KEYS: keys.join(','),
      GATEHOUSE_TOKEN_KEYS: keys.join(', '),
    });
  const listed = (...keys: string[]) => valueFrom(operator(...keys), 'keys');

  it('`keys list` shows the fingerprint of each key, which one signs, and nodes with different keys', async () => {
    const beat = await startHeartbeat({
      ...parts(),
      node: 'web:2',
      clock: () => Date.now(),
      log: { warn: () => {} },
      keysInUse: () => ({ cookieKeys: [NEW], tokenKeys: [NEW, OLD] }),
      describe: async () => READY_NODE,
    });
    const { keys, nodes, warnings } = await listed(OLD, NEW);
    expect(keys).to.deep.include.members([
      { kind: 'token', fingerprint: keyFingerprint(OLD), use: 'current' },
      { kind: 'cookie', fingerprint: keyFingerprint(NEW), use: 'other' },
    ]);
    expect(nodes.map(({ node }: { node: string }) => node)).to.deep.equal(['web:2']);
    expect(warnings).to.have.length(1);
    const message = `this configuration signs with the cookie key ${keyFingerprint(OLD)}, which node web:2 does not accept`;
    expect(warnings[0]).to.include({ message }).and.property('remedy').to.contain('GATEHOUSE_COOKIE_KEYS');
    const { output } = await operator(OLD, NEW)('keys list');
    expect(output).to.match(/cookie +[0-9a-f]{8} +signs\n *cookie +[0-9a-f]{8} +accepted/);
    expect(output).not.to.contain(OLD).and.not.to.contain(NEW);
    await beat.stop();
  });

  it('`keys generate` prints only the key on standard output, and where to put it on standard error', async () => {
    const run = operatorWith({});
    const { output, errors, exitCode } = await run('keys generate --kind token');
    expect(exitCode).to.equal(0);
    expect(output).to.match(/^[A-Za-z0-9_-]{64}\n$/);
    expect(errors).to.contain('GATEHOUSE_TOKEN_KEYS').and.contain('old,new');
    expect((await run('keys generate')).output).not.to.equal(output);
    const value = await valueFrom(run, 'keys generate --kind cookie');
    expect(value).to.include({ variable: 'GATEHOUSE_COOKIE_KEYS' });
  });

  it('`keys generate --out` writes the key into a new file that only its owner may read', async () => {
    const folder = temporaryDirectory('keys');
    const run = operatorWith({});
    const file = path.join(folder, 'token-keys');
    const { output, errors } = await run(['keys', 'generate', '--kind', 'token', '--out', file]);
    const key = readFileSync(file, 'utf8');
    expect(key).to.match(/^[A-Za-z0-9_-]{64}\n$/);
    expect(statSync(file).mode & 0o777).to.equal(0o600);
    expect(output + errors)
      .to.contain(`The secret is in ${file}`)
      .and.not.contain(key.trim());
    const value = await valueFrom(run, ['keys', 'generate', '--out', path.join(folder, 'other')]);
    expect(Object.keys(value)).to.deep.equal(['steps']);
    const dangling = path.join(folder, 'dangling');
    symlinkSync(path.join(folder, 'nothing'), dangling);
    // An existing file may be readable, or hold the key in use.
    for (const unusable of [file, path.join(folder, 'no', 'folder'), dangling, folder]) {
      await expectWrongUsage(run, [['keys', 'generate', '--out', unusable]]);
    }
    expect(readFileSync(file, 'utf8')).to.equal(key);
  });

  it('a secret that `--out` cannot write is printed, its file is removed, and the command fails', () => {
    const file = path.join(temporaryDirectory('full'), 'key');
    const command = `ulimit -f 0 && exec "${process.execPath}" src/operator/main.ts keys generate --out "${file}"`;
    const { status, stdout, stderr } = spawnSync('sh', ['-c', command], { encoding: 'utf8' });
    expect(status, stderr).to.equal(1);
    expect(stdout).to.match(/^[A-Za-z0-9_-]{64}\n$/);
    expect(stderr).to.contain('could not be written (EFBIG). Keep the secret from here:');
    expect(existsSync(file)).to.equal(false);

    const warnings: string[] = [];
    const secretFile = createSecretFile(file, (sentence) => warnings.push(sentence));
    // After this, each write fails.
    secretFile.close();
    const report = { value: { key: NEW }, text: NEW, secret: NEW };
    expect(secretFile.take(report)).to.deep.equal({ ...report, exitCode: 1 });
    const further = { value: undefined, text: 'Its owner was mailed.' };
    expect(secretFile.take(further)).to.equal(further);
    expect(warnings).to.have.length(1);
  });

  it('`keys list` without configured keys says so, and generates none', async () => {
    for (const _time of ['first', 'second']) {
      expect((await refusal('keys')).code).to.equal('keys_missing');
    }
  });
});
