import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, statSync, symlinkSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { createSecretFile } from '../../src/operator/command/secret-file.ts';
import { keyFingerprint, startKeySightings } from '../../src/storage/key-sightings.ts';
import { READY_NODE } from '../support/ready-node.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { setUpOperator } from './operator-suite.ts';
import { expectWrongUsage, operatorWith, valueFrom, variablesOf } from './run-operator.ts';

const OLD = 'an-old-key-of-the-tests-0123456789abcdef';
const NEW = 'a-new-key-of-the-tests-0123456789abcdefg';
const DAY = 86_400_000;

describe('operator keys', () => {
  const { refusal, parts } = setUpOperator();
  beforeEach(async () => {
    for (const table of ['key_sightings', 'node_keys']) {
      await parts().database.query(`DELETE FROM ${table}`);
    }
  });

  const operator = (...keys: string[]) =>
    operatorWith({
      ...variablesOf(parts().database),
      GATEHOUSE_COOKIE_KEYS: keys.join(','),
      GATEHOUSE_TOKEN_KEYS: keys.join(', '),
    });
  const listed = (...keys: string[]) => valueFrom(operator(...keys), 'keys');

  /** Records a node that had these keys this many days ago; 0 means that it is still running. */
  async function nodeHad(daysAgo: number, node: string, ...keys: string[]): Promise<void> {
    await startKeySightings({
      ...parts(),
      node,
      clock: () => Date.now() - daysAgo * DAY,
      log: { warn: () => {} },
      keysInUse: () => ({ cookieKeys: keys, tokenKeys: keys }),
      describe: async () => READY_NODE,
    });
  }

  it('`keys list` shows the fingerprint of each key, when it began to sign, and when it can be removed', async () => {
    await nodeHad(50, 'web:1', OLD);
    await nodeHad(10, 'web:1', OLD, NEW);
    await nodeHad(8, 'web:1', NEW, OLD);
    const { keys, warnings } = await listed(NEW, OLD);
    const summary = keys.map((key: Record<string, string>) => [
      key.kind,
      key.fingerprint,
      key.use,
      daysFromNow(key.current_since),
      daysFromNow(key.removable_from),
    ]);
    expect(summary).to.deep.equal([
      ['cookie', keyFingerprint(NEW), 'current', -8, null],
      // The key was last used 10 days ago; from then on a session lasts up to 7 days, a refresh
      // token up to 30.
      ['cookie', keyFingerprint(OLD), 'older', -50, -3],
      ['token', keyFingerprint(NEW), 'current', -8, null],
      ['token', keyFingerprint(OLD), 'older', -50, 20],
    ]);
    expect(warnings).to.have.length(1);
    expect(warnings[0].message).to.contain(keyFingerprint(OLD)).and.contain('still accepted');
    expect(warnings[0].remedy).to.contain('GATEHOUSE_COOKIE_KEYS');

    const { output } = await operator(NEW, OLD)('keys list');
    expect(output).to.match(/cookie +[0-9a-f]{8} +older .*safe since/);
    expect(output).to.match(/token +[0-9a-f]{8} +older .*not before/);
    expect(output).not.to.contain(OLD).and.not.to.contain(NEW);
  });

  it('`keys list` does not show a key as removable that still signs on a node, or has never signed', async () => {
    await nodeHad(40, 'web:1', OLD);
    await nodeHad(0, 'web:2', OLD, NEW);
    const [, older] = (await listed(NEW, OLD)).keys;
    expect(older).to.include({ use: 'older', removable_from: null });
    const [, next] = (await listed(OLD, NEW)).keys;
    expect(next).to.include({ fingerprint: keyFingerprint(NEW), use: 'next', current_since: null });
  });

  it('a key that was already old when use was first recorded is treated as used for signing until that moment', async () => {
    await nodeHad(3, 'web:1', NEW, OLD);
    const { keys } = await listed(NEW, OLD);
    expect(keys[3]).to.include({ kind: 'token', use: 'older' });
    expect(daysFromNow(keys[3].removable_from)).to.equal(27);
  });

  it('`keys list` warns of a key in use for over a year, and of nodes with different keys', async () => {
    await nodeHad(366, 'web:1', OLD);
    await nodeHad(0, 'web:2', NEW);
    const { warnings } = await listed(OLD);
    const messages = warnings.map(({ message }: { message: string }) => message).join('\n');
    for (const message of [
      `the current token key ${keyFingerprint(OLD)} has been in use for 366 days`,
      `web:2 signs with the cookie key ${keyFingerprint(NEW)}`,
      `signs with the token key ${keyFingerprint(OLD)}, which node web:2 does not accept`,
    ]) {
      expect(messages).to.contain(message);
    }
    for (const { remedy } of warnings) expect(remedy).to.be.a('string').and.not.equal('');
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

function daysFromNow(time: string | undefined | null): number | null {
  return time ? Math.round((Date.parse(time) - Date.now()) / DAY) : null;
}
