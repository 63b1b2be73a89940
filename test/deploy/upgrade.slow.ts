/** The commands of docs/operations/upgrade.md upgrade two machines under load, and step back: nothing is lost. */
import { execFileSync } from 'node:child_process';
import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { expect } from 'chai';
import { DOCUMENTED_PROXIES, startProxy } from '../journeys/documented-proxies.ts';
import { prepareLoad } from '../journeys/rolling-load.ts';
import { setUpWorld, startAll, type Unfinished } from '../many-nodes/carried-over/world.ts';
import { settingsFor, testFinishing } from '../many-nodes/mixed-deployment.ts';
import { PREVIOUS_VERSION } from '../many-nodes/previous-version.ts';
import { python } from '../modules/python.ts';
import { operatorWith } from '../operator/run-operator.ts';
import { createOpened } from '../support/opened.ts';
import { createPerson } from '../support/person.ts';
import { freshDatabaseUrl } from '../support/postgres-server.ts';
import { previousRelease } from '../support/previous-release.ts';
import { findProgram } from '../support/programs.ts';
import { freshRedisUrl } from '../support/redis-server.ts';
import { describeOn, openssl, postgresServer, redisServer, required } from '../support/requirements.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { startUpstream } from '../support/upstream.ts';
import { ROOT, textOf } from './shipped-files.ts';
import { type Machine, startMachine } from './supervised-machine.ts';

const [nginx] = DOCUMENTED_PROXIES;
const needed = ['git', 'curl', 'systemd-notify'].map((name) => ({ program: findProgram(name), remedy: name }));
const SECRETS = {
  'cookie-keys': 'cookie-key-of-the-tests-0123456789abcdef',
  'token-keys': 'token-key-of-the-tests-0123456789abcdefg',
};
const RATE = 5;
const [, COMMANDS = ''] = /## With systemd\n.*?```sh\n(.*?)```/s.exec(textOf('docs/operations/upgrade.md')) ?? [];

/** Creates a repository with the tags `v-previous` and `v-present`. @returns its folder, and the version of each */
function createOrigin() {
  const folder = temporaryDirectory('origin');
  const git = (...words: string[]) =>
    execFileSync('git', ['-c', 'user.name=test', '-c', 'user.email=test@example.test', ...words], { cwd: folder });
  const versions: Record<string, string> = {};
  git('init', '-q');
  for (const tag of ['previous', 'present'] as const) {
    const from = (tag === 'previous' && previousRelease?.root) || ROOT;
    for (const name of ['bin', 'config', 'deploy', 'src', 'views', 'package.json']) {
      rmSync(path.join(folder, name), { recursive: true, force: true });
      cpSync(path.join(from, name), path.join(folder, name), { recursive: true });
    }
    const manifest = path.join(folder, 'package.json');
    const { version } = JSON.parse(readFileSync(manifest, 'utf8'));
    versions[tag] = tag === 'previous' && from === ROOT ? '0.0.0' : version;
    const text = readFileSync(manifest, 'utf8').replace(`"version": "${version}"`, `"version": "${versions[tag]}"`);
    writeFileSync(manifest, text);
    git('add', '--all');
    git('commit', '-q', '--allow-empty', '-m', tag);
    git('tag', `v-${tag}`);
  }
  return { folder, versions };
}

describeOn(
  [postgresServer, redisServer, openssl, python, nginx ?? openssl, ...needed],
  'the documented upgrade',
  () => {
    const opened = createOpened();
    const certificates = getCACertificates();
    const on = {} as {
      origin: ReturnType<typeof createOrigin>;
      machines: Machine[];
      world: Awaited<ReturnType<typeof setUpWorld>>;
      operator: ReturnType<typeof operatorWith>;
    };

    before(async () => {
      // On one machine, so that the nodes have different ports, by which they are named.
      const proxy = await startProxy(opened, { ...(nginx ?? expect.fail('nginx')), isOneMachine: true });
      const { issuer } = proxy;
      on.origin = createOrigin();
      setDefaultCACertificates([...certificates, readFileSync(proxy.certificate, 'utf8')]);
      const upstream = await startUpstream(issuer);
      const stores = { 'database-url': await freshDatabaseUrl(), 'redis-url': await freshRedisUrl() };
      on.machines = await Promise.all(
        proxy.nodes.map((address) => {
          const { host } = address;
          const server = { host, operators_host: host, proxy_hops: 1 };
          const settings = { ...JSON.parse(settingsFor(upstream)), issuer, server };
          const environment = textOf('deploy/systemd/environment');
          const files = { ...SECRETS, ...stores, environment, 'gatehouse.yaml': JSON.stringify(settings) };
          return startMachine(opened, { address, origin: on.origin.folder, files, python: required(python) });
        }),
      );
      for (const machine of on.machines) {
        await machine.run('cd /opt/gatehouse && git checkout -q v-previous && cp deploy/systemd/* /etc/systemd/system');
        await machine.start();
      }
      const settings = path.join(temporaryDirectory('operator'), 'gatehouse.yaml');
      writeFileSync(settings, JSON.stringify({ issuer, server: { proxy_hops: 1 } }));
      const environment = {
        GATEHOUSE_CONFIG: settings,
        DATABASE_URL: stores['database-url'],
        REDIS_URL: stores['redis-url'],
        GATEHOUSE_COOKIE_KEYS: SECRETS['cookie-keys'],
        GATEHOUSE_TOKEN_KEYS: SECRETS['token-keys'],
      };
      on.operator = operatorWith(environment, PREVIOUS_VERSION.runOperator);
      on.world = await setUpWorld(on.operator, { issuer, upstream });
    });
    after(async () => {
      await opened.closeAll();
      setDefaultCACertificates(certificates);
    });

    for (const to of ['present', 'previous'] as const) {
      describe(`to the ${to} version, one machine after the other`, () => {
        let unfinished: Unfinished;
        const failures: string[] = [];
        let signIns = 0;
        let printed = '';

        before(async () => {
          const { world, operator, machines } = on;
          unfinished = await startAll(world, operator);
          const load = await prepareLoad(world.issuer, world);
          load.start(RATE);
          let isOver = false;
          const signInSteadily = async () => {
            for (; !isOver; signIns += 1) {
              const browser = createPerson(world.issuer);
              await browser.signIn(world.person);
              const { status, html } = await browser.get('/profile');
              if (!html.includes(world.person.email)) failures.push(`sign-in: ${status}`);
              await delay(1_000 / RATE);
            }
          };
          const signingIn = signInSteadily().catch((error: unknown) => void failures.push(`sign-in: ${error}`));
          for (const machine of machines) printed = await machine.run(COMMANDS.replace('v1.1.0', `v-${to}`));
          isOver = true;
          await signingIn;
          await load.stop();
          await load.expectAllValid();
          failures.push(...load.failures.map(({ what }) => what));
        });

        it('no refresh, introspection, page, stream or sign-in fails during the change of versions', () => {
          expect(failures.join('\n')).to.equal('');
          expect(signIns).to.be.above(0);
        });

        it('during a version change systemd reports no failure, and `nodes` then shows the target version everywhere', () => {
          expect(on.machines.flatMap((machine) => machine.failures)).to.deep.equal([]);
          const words = printed.slice(printed.search(/^NODE/m)).split(/\s+/);
          expect(words.filter((word) => word === 'ready')).to.have.length(2);
          expect(words.filter((word) => word === on.origin.versions[to])).to.have.length(2);
        });

        testFinishing(() => unfinished, `the upgrade to the ${to} version`);
      });
    }
  },
);
