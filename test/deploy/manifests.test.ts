/** The files for Compose and systemd are valid, complete, and consistent with the settings. */
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { parse } from 'yaml';
import manifest from '../../package.json' with { type: 'json' };
import { shippedConfiguration } from '../journeys/documented-proxies.ts';
import { findProgram, runsAsRoot } from '../support/programs.ts';
import { describeOn, type Requirement } from '../support/requirements.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { CLOSING, ROOT, settingsIn, textOf, VARIABLES } from './shipped-files.ts';

/** The `health_interval` in deploy/compose/Caddyfile, in seconds. */
const CADDY_HEALTH_INTERVAL = 1;
/** Returns the lines below `reverse_proxy` of a Caddyfile, without comments. */
const optionsOf = (block: string): string[] =>
  [...block.matchAll(/^ {4}(\w[^#\n]*\w)/gm)].map(([, option = '']) => option);

type Part = ReturnType<typeof parse>;

/** Additional capabilities of containers in compose.yaml. */
const CAPABILITIES: Readonly<Record<string, readonly string[]>> = {
  secrets: ['CHOWN'],
  caddy: ['NET_BIND_SERVICE'],
};

describe('compose.yaml', () => {
  const { services, volumes, networks } = parse(textOf('compose.yaml'), { merge: true });
  const each = Object.entries<Part>(services);
  const nodes = each.filter(([name]) => name === 'one' || name === 'two').map(([, node]) => node);
  const image = textOf('Dockerfile');

  it('compose.yaml names only existing files, and uses every volume and network', () => {
    const mounted = each.flatMap(([, { volumes: own = [] }]) => own.map((volume: string) => volume.replace(/:.*/, '')));
    const files = mounted.filter((source) => source.startsWith('.'));
    const named = mounted.filter((source) => !source.startsWith('.'));
    for (const file of files) expect(existsSync(path.join(ROOT, file)), file).to.equal(true);
    expect([...new Set(named)]).to.have.members(Object.keys(volumes));
    const joined = new Set(each.flatMap(([, { networks: own = [] }]) => own));
    expect([...joined]).to.have.members(Object.keys(networks));
  });

  it('compose.yaml waits only for containers that have a health check or that end', () => {
    for (const [name, { depends_on: awaited = {} }] of each) {
      for (const [other, { condition }] of Object.entries<{ condition: string }>(awaited)) {
        const { healthcheck, image: from, restart } = services[other];
        if (condition === 'service_healthy') {
          const isChecked = healthcheck ?? (from === 'gatehouse' && image.includes('HEALTHCHECK'));
          expect(isChecked, `${name}: ${other}`).to.be.ok;
        } else expect([condition, restart]).to.deep.equal(['service_completed_successfully', undefined]);
      }
    }
  });

  it('compose.yaml limits the capabilities, files, memory and processes of each container, and sets its user', () => {
    for (const [name, service] of each) {
      expect(service, name).to.deep.include({
        read_only: true,
        cap_drop: ['ALL'],
        security_opt: ['no-new-privileges:true'],
        pids_limit: 256,
      });
      expect(service.cap_add, name).to.deep.equal(CAPABILITIES[name]);
      expect(service.mem_limit, name).to.match(/^\d+[mg]$/);
      // This container runs once as root, without a network, to give each secret file to the user who reads it.
      if (name === 'secrets') expect(service).to.include({ user: '0:0', network_mode: 'none' });
      else expect(service.user, name).to.match(/^(\d{3,4}):\1$/);
      for (const place of service.tmpfs ?? []) {
        const [, uid] = /:uid=(\d+)/.exec(place) ?? [];
        if (uid !== undefined) expect(service.user, place).to.equal(`${uid}:${uid}`);
      }
    }
    for (const name of ['postgres', 'redis', 'caddy']) {
      expect(services[name].healthcheck.test, name).to.be.an('array');
    }
    const script = textOf('deploy/compose/make-secrets.sh');
    for (const [name, { user }] of each.filter(([other]) => /postgres|redis|caddy/.test(other))) {
      expect(script, name).to.include(`\n${name}=${user.replace(/:.*/, '')}\n`);
    }
  });

  it('compose.yaml uses the image digests that pin-images.sh writes', () => {
    const folder = temporaryDirectory('pinned');
    const copies = ['compose.yaml', 'deploy/compose/pin-images.sh'];
    for (const name of copies) cpSync(path.join(ROOT, name), path.join(folder, name));
    writeFileSync(path.join(folder, '.env'), 'GATEHOUSE_ISSUER=https://a.example\nREDIS_IMAGE=x\n');
    // A stub replaces Docker: every image counts as pulled.
    const digest = `sha256:${'4'.repeat(64)}`;
    const docker = path.join(folder, 'docker');
    writeFileSync(docker, `#!/bin/sh\n[ "$1" = pull ] || echo "example@${digest}"\n`, {
      mode: 0o755,
    });
    const script = path.join(folder, 'deploy/compose/pin-images.sh');
    execFileSync(script, { env: { PATH: `${folder}:${process.env.PATH}` } });
    const written = readFileSync(path.join(folder, '.env'), 'utf8').trim().split('\n');
    const defaults = [...textOf('compose.yaml').matchAll(/\$\{([A-Z]+_IMAGE):-([^}]+)\}/g)];
    expect(written).to.deep.equal([
      'GATEHOUSE_ISSUER=https://a.example',
      ...defaults.map(([, variable, tag]) => `${variable}=${tag}@${digest}`),
    ]);
    // Every other image is built in this repository, from one of the images above.
    const own = each.filter(([, { image: from }]) => from !== 'gatehouse');
    for (const [name, { image: from }] of own) expect(from, name).to.match(/^\$\{[A-Z]+_IMAGE:-/);
    expect(services.secrets.build.args).to.have.all.keys('NODE_IMAGE');
    const [, base] = defaults.find(([, variable]) => variable === 'NODE_IMAGE')?.slice(1) ?? [];
    expect(image).to.include(`\nARG NODE_IMAGE=${base}\n`);
    expect(image.match(/^FROM (?!\$\{NODE_IMAGE\})/gm)).to.equal(null);
  });

  it('compose.yaml configures the nodes, Caddy and Redis as the service needs them', () => {
    expect(nodes).to.have.lengthOf(2);
    const { server } = settingsIn('config/container.yaml');
    for (const { environment = {}, ...node } of nodes) {
      expect(VARIABLES).to.include.members(Object.keys(environment));
      expect(node).to.include({ image: 'gatehouse', read_only: true });
      const timeoutFactor = Number.parseInt(node.stop_grace_period ?? '', 10);
      expect(timeoutFactor).to.be.above(server.shutdownDelaySeconds + CLOSING);
    }
    const caddyfile = textOf('deploy/compose/Caddyfile');
    expect(caddyfile).to.include(`one:${server.port} two:${server.port}`);
    // test/journeys/rolling-restarts.slow.ts restarts nodes behind a Caddy with these settings.
    const options = optionsOf(shippedConfiguration('Caddyfile'));
    for (const line of options) expect(caddyfile).to.include(line);
    // There it kills nodes only behind the first of these.
    expect(optionsOf(shippedConfiguration('one-machine.Caddyfile')).slice(0, options.length)).to.deep.equal(options);
    expect(server.shutdownDelaySeconds).to.be.above(2 * CADDY_HEALTH_INTERVAL);
    expect(server.operatorsPort).to.equal(3001);
    const command = services.redis.command.join(' ');
    expect(command).to.include('--appendonly yes').and.to.include('--maxmemory-policy noeviction');
  });
});

const systemdAnalyze: Requirement = {
  program: findProgram('systemd-analyze'),
  remedy: 'systemd-analyze (Debian package systemd)',
};

describeOn([systemdAnalyze], 'deploy/systemd', () => {
  const units = readdirSync(path.join(ROOT, 'deploy/systemd')).filter(
    (name) => !name.endsWith('.conf') && name !== 'environment',
  );
  const unitText = (name: string): string => textOf(`deploy/systemd/${name}`);

  it('the environment file contains only variables of the service', () => {
    const lines = unitText('environment').replace(/^#.*\n/gm, '');
    const names = lines
      .trim()
      .split('\n')
      .map((line) => line.replace(/(_FILE)?=.*/, ''));
    expect([...VARIABLES, 'GATEHOUSE_CONFIG']).to.include.members(names);
  });

  it('systemd accepts the unit files without a warning', () => {
    const folder = temporaryDirectory('systemd');
    for (const name of units) {
      // Replace the path: systemd checks that the program exists, but it may be elsewhere on this machine.
      const here = unitText(name).replace('ExecStart=/usr/bin/node', `ExecStart=${process.execPath}`);
      writeFileSync(path.join(folder, name), here);
    }
    const files = units.map((name) => path.join(folder, name));
    const verify = ['-c', 'systemd-analyze verify "$@" 2>&1', 'sh', ...files];
    expect(execFileSync('sh', verify, { encoding: 'utf8' })).to.equal('');
  });

  it('the systemd unit starts Node with the same options as `npm start` and the image', () => {
    const { start } = manifest.scripts;
    const [, variable = '', flags = ''] = /^(\S+) exec node (--.+?) --require/.exec(start) ?? [];
    const unit = unitText('gatehouse@.service');
    expect(unit).to.include(`Environment=${variable}\n`).and.include(`node ${flags} --require`);
    const image = textOf('Dockerfile');
    expect(image)
      .to.include(variable)
      .and.include(`"${flags.replaceAll(' ', '", "')}"`);
  });

  it('systemd does not restart a service that exits because of wrong settings', () => {
    const [, status] = /^const WRONG_SETTINGS = (\d+);$/m.exec(textOf('src/main.ts')) ?? [];
    expect(unitText('gatehouse@.service')).to.include(`\nRestartPreventExitStatus=${status}\n`);
  });

  for (const name of ['gatehouse@.service', 'gatehouse-import.service']) {
    it(`systemd-analyze rates the exposure of the unit ${name} at most 1.3`, () => {
      const folder = temporaryDirectory('exposure');
      const file = path.join(folder, name);
      writeFileSync(file, unitText(name));
      const words = ['security', '--offline=true', '--threshold=13', file];
      expect(() => execFileSync('systemd-analyze', words)).not.to.throw();
    });
  }

  it('tmpfiles.conf creates the folder of the import, writable by its group and readable by the service', function () {
    if (!runsAsRoot) return this.skip();
    const root = temporaryDirectory('machine');
    mkdirSync(path.join(root, 'etc'));
    const inRoot = (program: string, ...words: readonly string[]) =>
      execFileSync(program, [`--root=${root}`, ...words], { stdio: 'pipe' });
    inRoot('systemd-sysusers', path.join(ROOT, 'deploy/systemd/sysusers.conf'));
    inRoot('systemd-tmpfiles', '--create', path.join(ROOT, 'deploy/systemd/tmpfiles.conf'));
    const unit = unitText('gatehouse-import.service');
    const [, file = ''] = / import (\S+)/.exec(unit) ?? [];
    const { mode, gid } = statSync(path.join(root, path.dirname(file)));
    expect(mode & 0o7777).to.equal(0o2770);
    const groups = readFileSync(path.join(root, 'etc/group'), 'utf8');
    expect(groups).to.include(`gatehouse-import:x:${gid}:`);
    expect(unit).to.include('\nSupplementaryGroups=gatehouse-import\n');
    expect(groups).to.match(/^gatehouse:/m);
  });

  it('the systemd unit gives a process enough time to shut down', () => {
    const [, timeoutFactor] = /^TimeoutStopSec=(\d+)$/m.exec(unitText('gatehouse@.service')) ?? [];
    const { server } = settingsIn('config/production.example.yaml');
    expect(Number(timeoutFactor)).to.be.above(server.shutdownDelaySeconds + CLOSING);
  });
});
