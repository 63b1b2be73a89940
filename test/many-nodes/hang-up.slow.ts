/** SIGHUP: a process reads its settings and the files of its secrets again. */
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { granted, partnerTokens } from '../provider/partner-tokens.ts';
import { clientCredentials, refresh } from '../support/oauth.ts';
import { describeOn, postgresServer, redisServer } from '../support/requirements.ts';
import { startSeeded } from '../support/seeded.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { type RunningNode, startNode } from './running-node.ts';

describeOn([postgresServer, redisServer], 'a node that receives SIGHUP', () => {
  const on = startSeeded({ on: 'postgres+redis' });
  let node: RunningNode;
  let issuer: string;
  const tokenKeysFile = path.join(temporaryDirectory('keys'), 'token-keys');

  before(async () => {
    writeFileSync(tokenKeysFile, on.service.settings.secrets.tokenKeys.join(','));
    const environment = { GATEHOUSE_TOKEN_KEYS_FILE: tokenKeysFile };
    node = await startNode({ sharing: on.service, environment });
    issuer = `http://localhost:${node.port}`;
  });
  after(() => node?.end('SIGKILL'));

  async function hangUp(output: string): Promise<void> {
    process.kill(node.pid, 'SIGHUP');
    await node.waitUntil(async () => expect(node.output()).to.include(output));
  }
  const expiresIn = async (): Promise<unknown> => (await clientCredentials(issuer, on.clients.machine)).body.expires_in;

  it('on SIGHUP a node applies changed settings and keys, and logs their names, but no value of a key', async () => {
    const client = on.clients.confidential;
    const { refreshToken } = await partnerTokens(issuer, on.seeded).tokens(client);
    const keys = readFileSync(tokenKeysFile, 'utf8');
    writeFileSync(tokenKeysFile, `${'n'.repeat(40)},${keys}`);
    node.writeSettings('tokens:\n  machine_access_token: 4m\n');
    await hangUp('GATEHOUSE_TOKEN_KEYS');
    expect(await expiresIn()).to.equal(240);
    expect(node.output()).not.to.include(keys).and.not.include('n'.repeat(40));

    // This token is signed with the new key, which the other node does not have yet.
    const { refreshToken: successor } = await granted(refresh(issuer, client, refreshToken));
    expect((await refresh(on.issuer, client, successor)).status).to.equal(400);
    expect((await refresh(issuer, client, successor)).status).to.equal(200);
  });

  it('on SIGHUP a node reports wrong settings as text and in the log, and changes nothing', async () => {
    node.writeSettings('tokens:\n  machine_access_token: soon\n  colour: red\n');
    await hangUp('Nothing was reloaded.');
    expect(node.output()).to.include('problem: is not a setting');
    expect(node.output()).to.match(/"level":50.*tokens\.colour/);
    expect(await expiresIn()).to.equal(240);
  });
});
