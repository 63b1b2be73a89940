/** The incidents of docs/operations/incidents.md that change a machine, with the commands of the page in their order. */
import { execFile, execFileSync } from 'node:child_process';
import { appendFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { keysOfEnvironment } from '../config/configuration.ts';
import { linesOf, ROOT, textOf } from '../documentation.ts';
import { launchNode } from '../many-nodes/running-node.ts';
import { type Answer, operatorFor, operatorWith, valueFrom } from '../operator/run-operator.ts';
import { partnerTokens } from '../provider/partner-tokens.ts';
import { eventually } from '../support/eventually.ts';
import { readinessOf } from '../support/metrics.ts';
import { authorizationUrl, clientCredentials, introspect, refresh, revokeCurrent } from '../support/oauth.ts';
import { createOpened } from '../support/opened.ts';
import { createPerson } from '../support/person.ts';
import { createCluster, freshDatabaseUrl, startPostgresServer } from '../support/postgres-server.ts';
import { findProgram, freePort, runsAsRoot } from '../support/programs.ts';
import { startRedisServer } from '../support/redis-server.ts';
import { describeOn, postgresServer, redisServer } from '../support/requirements.ts';
import { apiKeyOf, seed } from '../support/seed.ts';
import { startsOn, type TestService } from '../support/service.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const PAGE = textOf(path.join(ROOT, 'docs/operations/incidents.md'));

/** Returns the commands of the first block of a section. */
function commandsOf(section: string): readonly string[] {
  const [, block = ''] = /```sh\n(.*?)```/s.exec(PAGE.slice(PAGE.indexOf(`\n## ${section}\n`))) ?? [];
  const commands = linesOf(block);
  expect(commands, section).not.to.be.empty;
  return commands;
}

const redisCli = { program: findProgram('redis-cli'), remedy: 'redis-cli (Debian package redis-tools)' };
const curl = { program: findProgram('curl'), remedy: 'curl' };

/**
 * Runs the commands with the ports of this test. `journalctl` prints nothing: the machine's own journal is not tested.
 *
 * @param start what `systemctl start` does for each unit
 * @returns what each command prints
 */
async function follow(
  commands: readonly string[],
  { operatorsUrl }: Pick<TestService, 'operatorsUrl'>,
  { redisUrl = '', start = {} }: { redisUrl?: string; start?: Readonly<Record<string, () => Promise<void>>> } = {},
): Promise<Readonly<Record<string, string>>> {
  const printed: Record<string, string> = {};
  for (const command of commands) {
    const [, unit] = /^systemctl start (\S+)$/.exec(command) ?? [];
    if (unit) await start[unit]?.();
    if (unit) continue;
    const here = command
      .replace('localhost:3001', new URL(operatorsUrl).host)
      .replace(/^REDISCLI_AUTH=\S+ \S+ redis-cli /, `redis-cli -u '${redisUrl}' `);
    const stub = 'journalctl() { :; }\n';
    // Asynchronously, because the service that answers runs in this process.
    printed[command] = (await promisify(execFile)('bash', ['-ec', stub + here])).stdout;
  }
  return printed;
}

const opened = createOpened();
afterEach('close what the test started', () => opened.closeAll());
const startService = (on: 'postgres' | 'postgres+redis', storage: Readonly<Record<string, string>>) =>
  opened.add(startsOn(on)({ settings: { storage } }), (service) => service.close());

const expectReady = (service: TestService) =>
  eventually(async () => expect((await readinessOf(service)).body).to.include({ status: 'ready' }));

describeOn([postgresServer], 'the incident of a broken settings file', () => {
  it('nodes keep working with the last valid settings, and the documented commands apply a corrected file', async () => {
    const file = path.join(temporaryDirectory('settings'), 'gatehouse.yaml');
    const issuer = `http://localhost:${await freePort()}`;
    const good = `issuer: ${issuer}\nlog:\n  level: warn\n`;
    writeFileSync(file, good);
    const machine = { ...keysOfEnvironment, DATABASE_URL: await freshDatabaseUrl(), GATEHOUSE_CONFIG: file };
    const launch = () => opened.add(launchNode({ issuer, environment: machine }), (one) => one.end('SIGTERM'));
    const nodes = [await launch(), await launch()] as const;
    const areReady = async () => {
      for (const node of nodes) expect((await node.readyz()).status).to.equal(200);
    };
    for (const node of nodes) await node.waitUntil(areReady);
    const run = operatorWith({ ...machine, GATEHOUSE_OPERATORS_PORT: new URL(nodes[0].operatorsUrl).port });
    const follow = async (): Promise<Record<string, Answer>> => {
      const all: Record<string, Answer> = {};
      for (const command of commandsOf('The settings file is broken')) {
        const words = command.replace(/^gatehouse /, '');
        all[words] = await run(words);
      }
      return all;
    };

    // A typo, and what an editor leaves on a full disk.
    for (const [broken, says] of [
      [good.replace('level', 'levle'), /line 3\n[\s\S]*remedy: +remove it; allowed here: level/],
      ['', /contains no setting\n[\s\S]*remedy: +restore the file/],
    ] as const) {
      writeFileSync(file, broken);
      const { 'check-config': checked, reload, nodes: listed } = await follow();
      expect([checked?.exitCode, reload?.exitCode, listed?.exitCode]).to.deep.equal([3, 3, 0]);
      expect(checked?.errors).to.match(says);
      expect(listed?.errors).to.contain(`${file} is refused`);
      await areReady();
    }
    const started = await launch();
    expect(await started.exitCode, started.output()).to.equal(78);

    writeFileSync(file, good.replace('warn', 'error'));
    for (const [command, { exitCode, errors }] of Object.entries(await follow())) {
      expect(exitCode, command + errors).to.equal(0);
      expect(errors, command).not.to.contain('refused');
    }
    const { nodes: shown } = await valueFrom(run, 'nodes');
    expect(shown).to.have.length(2);
    expect(new Set(shown.map(({ settings }: { settings: string }) => settings)).size).to.equal(1);
  });
});

describeOn([postgresServer, curl], 'the incident of a full disk', () => {
  let disk: string | undefined;

  before('mount a small disk', function () {
    // Only root may mount a disk, and a container may forbid even that.
    if (!runsAsRoot) this.skip();
    const folder = temporaryDirectory('disk');
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=160m', 'none', folder], { stdio: 'pipe' });
    } catch {
      this.skip();
    }
    disk = folder;
  });
  after(() => {
    if (disk) execFileSync('umount', ['--lazy', disk]);
  });

  it('a node whose PostgreSQL has no disk space reports it, loses no confirmed revocation, and recovers by itself', async () => {
    if (!disk) throw new Error('not mounted');
    const data = path.join(disk, 'data');
    const link = path.join(temporaryDirectory('link'), 'cluster');
    // The server copies the link, so that its files are on the small disk.
    execFileSync('cp', ['-a', await createCluster(), data]);
    execFileSync('ln', ['-s', data, link]);
    execFileSync('chmod', ['755', disk, path.dirname(link)]);
    const server = await startPostgresServer(undefined, ['min_wal_size=32MB', 'max_wal_size=48MB'], async () => link);
    const service = await startService('postgres', { databaseUrl: await server.createDatabase() });
    const seeded = await seed(service);
    const partner = partnerTokens(service.issuer, seeded);
    const { confidential, machine, resourceServer } = seeded.clients;
    const ended = await partner.tokens(confidential);
    const kept = await partner.tokens(confidential);
    expect((await revokeCurrent(service.issuer, ended.accessToken)).status).to.equal(204);

    const filling = path.join(disk, 'filling');
    await eventually(async () => {
      const { bavail, bsize } = await statfs(data);
      // Each checkpoint of the server frees some space.
      appendFileSync(filling, Buffer.alloc(bavail * bsize));
      expect((await readinessOf(service)).status).to.equal(503);
    });
    const commands = commandsOf('A disk is full');
    const printed = await follow(commands, service);
    expect(printed[commands[0] ?? '']).to.match(/No space left on device/);
    expect(printed['df -h']).to.match(new RegExp(`100% ${disk}\n`));
    // A write that fits into the files that exist still succeeds.
    const { status } = await revokeCurrent(service.issuer, kept.accessToken);
    expect([204, 503]).to.include(status);

    rmSync(filling);
    await expectReady(service);
    expect(await partner.isActive(ended.accessToken)).to.equal(false);
    if (status === 204) expect(await partner.isActive(kept.accessToken)).to.equal(false);
    else expect((await introspect(service.issuer, resourceServer, kept.accessToken)).status).to.equal(200);
    expect((await clientCredentials(service.issuer, machine)).status).to.equal(200);
    expect(await valueFrom(operatorFor(service), 'doctor')).to.include({ problems: 0 });
  });
});

describeOn([postgresServer, redisServer, redisCli, curl], 'the incident of a lost Redis', () => {
  it('after Redis has lost all data the service recovers by itself, and ended tokens stay invalid', async () => {
    const redis = await startRedisServer();
    const service = await startService('postgres+redis', { redisUrl: redis.url });
    const seeded = await seed(service);
    const { person } = seeded;
    const { confidential, resourceServer } = seeded.clients;
    const partner = partnerTokens(service.issuer, seeded);
    const ended = await partner.tokens(confidential);
    const lost = await partner.tokens(confidential);
    expect((await revokeCurrent(service.issuer, ended.accessToken)).status).to.equal(204);
    const key = await apiKeyOf(service, person);

    await redis.kill();
    for (const name of readdirSync(redis.directory)) rmSync(path.join(redis.directory, name), { recursive: true });
    await eventually(async () => expect((await readinessOf(service)).body).to.include({ tokens: 'away' }));
    const commands = commandsOf('Redis lost its data');
    const given = { redisUrl: redis.url, start: { 'redis-server': () => redis.restart() } };
    const printed = await follow(commands, service, given);
    expect(printed[commands[0] ?? '']).to.contain('not ready');
    expect(printed[commands.at(-1) ?? '']).to.contain('aof_enabled:1');

    await expectReady(service);
    for (const { accessToken, refreshToken } of [ended, lost]) {
      expect(await partner.isActive(accessToken)).to.equal(false);
      expect((await refresh(service.issuer, confidential, refreshToken)).body.error).to.equal('invalid_grant');
    }
    expect((await introspect(service.issuer, resourceServer, key.value)).body.active).to.equal(true);
    // The person signs in again, and is not asked for an approval again.
    const again = createPerson(service.issuer);
    const page = await again.open(authorizationUrl(service.issuer, confidential));
    const { email, password } = person;
    const signedIn = await again.follow(await again.submit(page, { email, password }));
    expect(signedIn.location?.searchParams.get('code')).to.be.a('string');
    const { findings } = await valueFrom(operatorFor(service), 'doctor');
    for (const { check, status, message } of findings) {
      if (check.includes('redis')) expect(['ok', 'not_checked'], `${check}: ${message}`).to.include(status);
    }
  });
});
