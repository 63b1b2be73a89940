import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { type AddressInfo, connect, createServer } from 'node:net';
import path from 'node:path';
import { expect } from 'chai';
import { parse } from 'yaml';
import { atEndOfFile } from '../support/end-of-run.ts';
import { freshDatabaseUrl } from '../support/postgres-server.ts';
import { findProgram, freePort, type Program, startProgram } from '../support/programs.ts';
import { freshRedisUrl } from '../support/redis-server.ts';
import { describeOn, postgresServer, type Requirement, redisServer } from '../support/requirements.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { buildImage, containerTools, type Image } from './image.ts';

const ROOT = path.join(import.meta.dirname, '../..');
const OPERATOR = ['gatehouse'];
/** The folder in the container in which compose.yaml mounts the secrets. */
const SECRETS = '/run/gatehouse';
const READERS = { nodes: 1000, postgres: 999, redis: 999 };

const caddy: Requirement = {
  program: findProgram('caddy'),
  remedy: 'caddy (Debian package caddy)',
};

describeOn([...containerTools, postgresServer, redisServer], 'the image', () => {
  const secrets = temporaryDirectory('secrets');
  const volumes = { [SECRETS]: path.join(secrets, 'nodes') };
  let image: Image;
  let host: string;
  let environment: Readonly<Record<string, string>>;

  const makeSecrets = () =>
    image.start(['sh', '/make-secrets/make-secrets.sh'], {
      user: '0:0',
      volumes: { '/secrets': secrets, '/make-secrets': path.join(ROOT, 'deploy/compose') },
    });

  before('build the image', async () => {
    image = await buildImage();
    for (const name of Object.keys(READERS)) mkdirSync(path.join(secrets, name));
    // Simulates the volume of a Caddy that ran as root.
    mkdirSync(path.join(secrets, 'caddy/pki'), { recursive: true, mode: 0o700 });
    const made = await outcomeOf(makeSecrets());
    expect(made).to.deep.equal({ exitCode: 0, output: 'The secrets are made.\n' });
    host = `localhost:${await freePort()}`;
    environment = {
      GATEHOUSE_ISSUER: `https://${host}`,
      ...(await freePorts()),
      DATABASE_URL: await freshDatabaseUrl(),
      REDIS_URL: await freshRedisUrl(),
      GATEHOUSE_COOKIE_KEYS_FILE: `${SECRETS}/cookie-keys`,
      GATEHOUSE_TOKEN_KEYS_FILE: `${SECRETS}/token-keys`,
    };
  });

  const outcomeOf = async (program: Program) => {
    const exitCode = await program.exitCode;
    return { exitCode, output: program.output() };
  };
  const runs = (command: readonly string[], given = environment) =>
    outcomeOf(image.start(command, { environment: given, volumes }));
  const health = () => runs(image.config.Healthcheck.Test.slice(1));

  it('the image contains what the service needs, and only root can write to it', () => {
    const { files, config } = image;
    expect(config).to.include({ User: '1000:1000', StopSignal: 'SIGTERM' });
    const { version } = JSON.parse(readFileSync(path.join(ROOT, 'package.json'), 'utf8'));
    expect(config.Labels['org.opencontainers.image.version']).to.equal(version);
    const own = path.join(files, config.WorkingDir);
    expect(readdirSync(own).sort()).to.deep.equal(
      'LICENSE bin config node_modules package-lock.json package.json src views'.split(' '),
    );
    expect(readdirSync(path.join(own, 'node_modules'))).to.not.include('mocha');
    const open = readdirSync(own, { recursive: true, encoding: 'utf8' }).filter((name) => {
      const { uid, mode } = statSync(path.join(own, name));
      return uid !== 0 || (mode & 0o022) !== 0 || (mode & 0o004) === 0;
    });
    expect(open).to.deep.equal([]);
  });

  it('the image generates the secrets for compose.yaml once, each readable only by its service', async () => {
    const files = Object.keys(READERS).flatMap((folder) =>
      readdirSync(path.join(secrets, folder)).map((name) => `${folder}/${name}`),
    );
    const contentOf = (name: string) => readFileSync(path.join(secrets, name), 'utf8').trim();
    const all = files.map(contentOf);
    for (const name of files) {
      const { uid, mode } = statSync(path.join(secrets, name));
      expect(mode & 0o777, name).to.equal(0o600);
      const [folder = ''] = name.split('/');
      const reader = READERS[folder as keyof typeof READERS];
      if (!name.endsWith('/complete')) expect(uid, name).to.equal(reader);
    }
    const { services } = parse(readFileSync(path.join(ROOT, 'compose.yaml'), 'utf8'), {
      merge: true,
    });
    const named = Object.entries<string>(services.one.environment).filter(([variable]) => variable.endsWith('_FILE'));
    for (const [, file] of named) expect(files).to.include(file.replace(SECRETS, 'nodes'));
    const password = contentOf('postgres/password');
    expect(new URL(contentOf('nodes/database-url'))).to.include({ hostname: 'postgres', password });
    const redis = new URL(contentOf('nodes/redis-url'));
    expect(contentOf('redis/redis.conf')).to.equal(`requirepass ${redis.password}`);
    expect((await outcomeOf(makeSecrets())).exitCode).to.equal(0);
    expect(files.map(contentOf)).to.deep.equal(all);
  });

  it('the secrets container gives PostgreSQL and Caddy ownership of their files, even if another user owned them', async () => {
    const uidOf = (name: string) => statSync(path.join(secrets, name)).uid;
    chownSync(path.join(secrets, 'postgres/password'), 0, 0);
    for (const name of ['caddy', 'caddy/pki']) chownSync(path.join(secrets, name), 0, 0);
    expect(await outcomeOf(makeSecrets())).to.deep.equal({ exitCode: 0, output: '' });
    expect(uidOf('postgres/password')).to.equal(READERS.postgres);
    expect([uidOf('caddy'), uidOf('caddy/pki')]).to.deep.equal([1001, 1001]);
  });

  it('a container exits with an explanation if no database is configured', async () => {
    const { DATABASE_URL, ...others } = environment;
    const { exitCode, output } = await runs(image.config.Cmd, others);
    // The exit code in `RestartPreventExitStatus` of the systemd unit: a restart would not help.
    expect(exitCode).to.equal(78);
    expect(output).to.include('set DATABASE_URL, or DATABASE_URL_FILE');
  });

  it('a starting container exits at once on its stop signal, even as process 1', async () => {
    const silent = createServer().listen(0, '127.0.0.1');
    atEndOfFile(() => void silent.close());
    await once(silent, 'listening');
    const { port } = silent.address() as AddressInfo;
    const DATABASE_URL = `postgres://nobody@127.0.0.1:${port}/nothing`;
    const service = image.start(image.config.Cmd, {
      environment: { ...environment, DATABASE_URL },
      volumes,
    });
    let isAsked = false;
    silent.once('connection', () => {
      isAsked = true;
    });
    await service.waitUntil(async () => expect(isAsked).to.equal(true));
    const [first = 0] = service.children();
    process.kill(first, image.config.StopSignal);
    expect(await service.exitCode, service.output()).to.equal(143);
  });

  it('the image runs operator commands on a read-only file system', async () => {
    const migrated = await runs([...OPERATOR, 'migrate']);
    expect(migrated.exitCode, migrated.output).to.equal(0);
    const add = ['accounts', 'add', '--email', 'jo@example.com', '--name', 'Jo', '--invite'];
    const { exitCode, output } = await runs([...OPERATOR, ...add, '--json']);
    expect(exitCode, output).to.equal(0);
    // The line before, from standard error, names the deployment.
    expect(JSON.parse(output.trim().split('\n').at(-1) ?? '').invite_link).to.include(`https://${host}/`);
  });

  describe('two running containers form a working deployment', () => {
    const nodes: { readonly program: Program; readonly port: string }[] = [];

    before(async () => {
      for (const others of [{}, await freePorts()]) {
        const own: Readonly<Record<string, string>> = { ...environment, ...others };
        const program = image.start(image.config.Cmd, { environment: own, volumes });
        await program.waitUntil(async () => {
          const url = `http://127.0.0.1:${own.GATEHOUSE_OPERATORS_PORT}/readyz`;
          expect((await fetch(url)).status).to.equal(200);
        });
        nodes.push({ program, port: own.PORT ?? '' });
      }
    });

    it('each container passes its health check', async () => {
      const { exitCode, output } = await health();
      expect(exitCode, output).to.equal(0);
    });

    describeOn([caddy], 'and the Caddy of compose.yaml', () => {
      it('the deployment passes the checks of the doctor', async () => {
        const [one = '', two = ''] = nodes.map(({ port }) => port);
        const home = temporaryDirectory('caddy');
        const file = path.join(home, 'Caddyfile');
        // Both nodes run on this machine, so their operators' ports differ; Caddy before 2.7 knows
        // no `request_buffers`. rolling-restarts.slow.ts tries these lines.
        const here = caddyfile
          .replace(/\n\s*(health_|request_buffers).*/g, '')
          .replace('one:3000', `localhost:${one}`)
          .replace('two:3000', `localhost:${two}`);
        // This machine must not trust the certificate authority that a test creates.
        const global = `admin off\nskip_install_trust\nhttp_port ${await freePort()}`;
        writeFileSync(file, `{\n${global}\n}\n${here}`);
        const { GATEHOUSE_ISSUER } = environment;
        const proxy = startProgram('caddy', ['run', '--adapter', 'caddyfile', '--config', file], {
          cwd: home,
          environment: { PATH: process.env.PATH, HOME: home, GATEHOUSE_ISSUER },
        });
        const authority = path.join(home, '.local/share/caddy/pki/authorities/local');
        await proxy.waitUntil(async () => {
          expect(existsSync(path.join(authority, 'root.crt'))).to.equal(true);
          await connected(host);
        });
        const trusted = '/run/authority';
        const { exitCode, output } = await outcomeOf(
          image.start([...OPERATOR, 'doctor'], {
            environment: { ...environment, NODE_EXTRA_CA_CERTS: `${trusted}/root.crt` },
            volumes: { ...volumes, [trusted]: copied(path.join(authority, 'root.crt')) },
          }),
        );
        expect(exitCode, output).to.equal(0);
        await proxy.end('SIGTERM');
      });
    });

    describe('containers shut down cleanly at the stop signal of the image', () => {
      it('each container shuts down cleanly, even if its program runs as process 1', async () => {
        for (const { program } of nodes) {
          const [first = 0] = program.children();
          process.kill(first, image.config.StopSignal);
          expect(await program.exitCode, program.output()).to.equal(0);
          expect(program.output()).to.include('"msg":"closing"');
        }
        expect((await health()).exitCode).to.equal(1);
      });
    });
  });
});

const caddyfile = readFileSync(path.join(ROOT, 'deploy/compose/Caddyfile'), 'utf8');

const freePorts = async () => ({
  PORT: String(await freePort()),
  GATEHOUSE_OPERATORS_PORT: String(await freePort()),
});

/** Copies the file out of Caddy's closed folder, so that every user in the container can read it. */
function copied(file: string): string {
  const folder = temporaryDirectory('authority');
  chmodSync(folder, 0o755);
  copyFileSync(file, path.join(folder, path.basename(file)));
  chmodSync(path.join(folder, path.basename(file)), 0o644);
  return folder;
}

/** Connects to the address once. Rejects if no server listens there. */
async function connected(address: string): Promise<void> {
  const { hostname, port } = new URL(`https://${address}`);
  const socket = connect(Number(port), hostname);
  await once(socket, 'connect');
  socket.destroy();
}
