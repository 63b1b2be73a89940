/** What starts Gatehouse elsewhere: well-formed, complete, and of one mind with the settings. */
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { parse, parseAllDocuments } from 'yaml';
import manifest from '../../package.json' with { type: 'json' };
import { mayBeInAFile, settingOf } from '../../src/config/environment.ts';
import { checkSettings, keysOfEnvironment } from '../config/configuration.ts';
import { findProgram } from '../support/programs.ts';
import { describeOn, type Requirement } from '../support/requirements.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const ROOT = path.join(import.meta.dirname, '../..');
const textOf = (name: string): string => readFileSync(path.join(ROOT, name), 'utf8');

const VARIABLES = [
  ...Object.keys(settingOf),
  ...mayBeInAFile,
  ...mayBeInAFile.map((name) => `${name}_FILE`),
];

/** Seconds that a process takes from SIGTERM on, at most: main.ts ends it by itself then. */
const CLOSING = 10;

/** What the service makes of a settings file where the environment gives the rest. */
const settingsIn = (name: string) =>
  checkSettings({
    file: path.join(ROOT, name),
    environment: {
      ...keysOfEnvironment,
      DATABASE_URL: 'postgres://db/gatehouse',
      REDIS_URL: 'redis://redis',
    },
  });

interface ComposeService {
  readonly image: string;
  readonly volumes?: readonly string[];
  readonly networks?: readonly string[];
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
  readonly environment?: Readonly<Record<string, string>>;
  readonly stop_grace_period?: string;
  readonly user: string;
  readonly cap_add?: readonly string[];
  readonly tmpfs?: readonly string[];
  readonly mem_limit: string;
}

/** What the containers of compose.yaml may do beyond what every one of them may. */
const CAPABILITIES: Readonly<Record<string, readonly string[]>> = {
  secrets: ['CHOWN'],
  caddy: ['NET_BIND_SERVICE'],
};

describe('compose.yaml', () => {
  const { services, volumes, networks } = parse(textOf('compose.yaml'), { merge: true });
  const each = Object.entries<ComposeService>(services);
  const nodes = each.filter(([name]) => name === 'one' || name === 'two').map(([, node]) => node);
  const image = textOf('Dockerfile');

  it('has nothing that Compose does not know', () => {
    const known = `build cap_add cap_drop command depends_on environment healthcheck image mem_limit
      network_mode networks pids_limit ports read_only restart security_opt stop_grace_period
      stop_signal sysctls tmpfs user volumes`.split(/\s+/);
    for (const [name, service] of each)
      expect(known, name).to.include.members(Object.keys(service));
  });

  it('names only what is there, and uses all of it', () => {
    const mounted = each.flatMap(([, { volumes: own = [] }]) =>
      own.map((volume) => volume.replace(/:.*/, '')),
    );
    const files = mounted.filter((source) => source.startsWith('.'));
    const named = mounted.filter((source) => !source.startsWith('.'));
    for (const file of files) expect(existsSync(path.join(ROOT, file)), file).to.equal(true);
    expect([...new Set(named)]).to.have.members(Object.keys(volumes));
    const joined = new Set(each.flatMap(([, { networks: own = [] }]) => own));
    expect([...joined]).to.have.members(Object.keys(networks));
  });

  it('waits only for what can be waited for', () => {
    for (const [name, { depends_on: awaited = {} }] of each) {
      for (const [other, { condition }] of Object.entries<{ condition: string }>(awaited)) {
        const { healthcheck, image: from, restart } = services[other];
        if (condition === 'service_healthy') {
          const isChecked = healthcheck ?? (from === 'gatehouse' && image.includes('HEALTHCHECK'));
          expect(isChecked, `${name}: ${other}`).to.be.ok;
        } else
          expect([condition, restart]).to.deep.equal(['service_completed_successfully', undefined]);
      }
    }
  });

  it('confines every container: no rights, a file system that is read-only, a user, limits', () => {
    for (const [name, service] of each) {
      expect(service, name).to.deep.include({
        read_only: true,
        cap_drop: ['ALL'],
        security_opt: ['no-new-privileges:true'],
        pids_limit: 256,
      });
      expect(service.cap_add, name).to.deep.equal(CAPABILITIES[name]);
      expect(service.mem_limit, name).to.match(/^\d+[mg]$/);
      // It gives each file to its reader, once, without a network.
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

  it('starts the images whose digests pin-images.sh has written down', () => {
    const folder = temporaryDirectory('pinned');
    const copies = ['compose.yaml', 'deploy/compose/pin-images.sh'];
    for (const name of copies) cpSync(path.join(ROOT, name), path.join(folder, name));
    writeFileSync(path.join(folder, '.env'), 'GATEHOUSE_ISSUER=https://a.example\nREDIS_IMAGE=x\n');
    // In the place of Docker: it has pulled whatever it is asked about.
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
    // Every image is one of these, or built here on one of these.
    const own = each.filter(([, { image: from }]) => from !== 'gatehouse');
    for (const [name, { image: from }] of own) expect(from, name).to.match(/^\$\{[A-Z]+_IMAGE:-/);
    expect(services.secrets.build.args).to.have.all.keys('NODE_IMAGE');
    const [, base] = defaults.find(([, variable]) => variable === 'NODE_IMAGE')?.slice(1) ?? [];
    expect(image).to.include(`\nARG NODE_IMAGE=${base}\n`);
    expect(image.match(/^FROM (?!\$\{NODE_IMAGE\})/gm)).to.equal(null);
  });

  it('gives each node what it asks of a container, and Redis what it asks of Redis', () => {
    expect(nodes).to.have.lengthOf(2);
    const { server } = settingsIn('config/container.yaml');
    for (const { environment = {}, ...node } of nodes) {
      expect(VARIABLES).to.include.members(Object.keys(environment));
      expect(node).to.include({ image: 'gatehouse', read_only: true });
      const patience = Number.parseInt(node.stop_grace_period ?? '', 10);
      expect(patience).to.be.above(server.shutdownDelaySeconds + CLOSING);
    }
    expect(textOf('deploy/compose/Caddyfile')).to.include(`one:${server.port} two:${server.port}`);
    const command = services.redis.command.join(' ');
    expect(command).to.include('--appendonly yes').and.to.include('--maxmemory-policy noeviction');
  });
});

interface NetworkRule {
  readonly from?: readonly NetworkPeer[];
  readonly to?: readonly NetworkPeer[];
  readonly ports: readonly object[];
}

interface NetworkPeer {
  readonly ipBlock?: object;
  readonly namespaceSelector?: { readonly matchLabels: object };
  readonly podSelector?: object;
}

describe('deploy/kubernetes', () => {
  const folder = path.join(ROOT, 'deploy/kubernetes');
  const read = (name: string) =>
    parseAllDocuments(readFileSync(path.join(folder, name), 'utf8')).map((one) => one.toJS());
  const [kustomization] = read('kustomization.yaml');
  const [generated] = kustomization.configMapGenerator;
  const manifests = kustomization.resources.flatMap(read);
  const of = (kind: string) => manifests.filter((one: { kind: string }) => one.kind === kind);
  const [deployment] = of('Deployment');
  const { metadata, spec: pod } = deployment.spec.template;
  const [container] = pod.containers;
  const { server } = settingsIn('deploy/kubernetes/gatehouse.yaml');

  it('is what Kubernetes reads, and all that is in the folder', () => {
    const files = ['kustomization.yaml', ...kustomization.resources, ...generated.files];
    expect(readdirSync(folder)).to.have.members(files);
    // The types of its API refuse what is missing, what is of another kind, and what it does not know.
    const checked = temporaryDirectory('kubernetes');
    symlinkSync(path.join(ROOT, 'node_modules'), path.join(checked, 'node_modules'));
    const lines = manifests.map((manifest: { apiVersion: string; kind: string }) => {
      const { apiVersion, kind } = manifest;
      const type = `import('kubernetes-models/${apiVersion}/${kind}').I${kind}`;
      return `export const a${manifests.indexOf(manifest)}: ${type} = ${JSON.stringify(manifest)};`;
    });
    writeFileSync(path.join(checked, 'manifests.ts'), lines.join('\n'));
    const options = '--noEmit --strict --skipLibCheck --module nodenext --types'.split(' ');
    const tsc = path.join(ROOT, 'node_modules/.bin/tsc');
    try {
      execFileSync(tsc, [...options, '', 'manifests.ts'], { cwd: checked, encoding: 'utf8' });
    } catch (error) {
      expect.fail((error as { stdout: string }).stdout);
    }
  });

  it('selects the nodes, and not the job beside them', () => {
    const { matchLabels } = deployment.spec.selector;
    expect(metadata.labels).to.include(matchLabels);
    const [job] = of('Job');
    expect(job.spec.template.metadata.labels).to.not.include(matchLabels);
    const selectors = [
      ...of('Service').map(({ spec }: { spec: { selector: object } }) => spec.selector),
      of('PodDisruptionBudget')[0].spec.selector.matchLabels,
      of('NetworkPolicy')[0].spec.podSelector.matchLabels,
      pod.topologySpreadConstraints[0].labelSelector.matchLabels,
    ];
    for (const selector of selectors) expect(selector).to.deep.equal(matchLabels);
  });

  it('leads to the ports where the service listens, by name', () => {
    const ports = [
      { name: 'http', containerPort: server.port },
      { name: 'operators', containerPort: server.operatorsPort },
    ];
    expect(container.ports).to.deep.equal(ports);
    const probes = [container.startupProbe, container.livenessProbe, container.readinessProbe];
    expect(probes.map(({ httpGet }) => `${httpGet.port}${httpGet.path}`)).to.deep.equal([
      ...['operators/healthz', 'operators/healthz', 'operators/readyz'],
    ]);
    const targets = of('Service').flatMap(
      (service: { spec: { ports: { targetPort: string }[] } }) =>
        service.spec.ports.map(({ targetPort }) => targetPort),
    );
    expect(targets).to.deep.equal(['http', 'operators']);
  });

  it('lets in and out only what it names: other pods by namespace and label, with a port', () => {
    const text = readFileSync(path.join(folder, 'networkpolicy.yaml'), 'utf8');
    // What stands in it as an example, too.
    const withExamples = text.replaceAll(
      /^( +)# ( *(?:- to:|ports:|- ipBlock:|cidr:|except:).*)$/gm,
      '$1$2',
    );
    for (const policies of [text, withExamples].map((one) => parseAllDocuments(one))) {
      const [nodes, all] = policies.map((one) => one.toJS().spec);
      expect(all).to.deep.include({ podSelector: {}, policyTypes: ['Ingress', 'Egress'] });
      expect(all).not.to.have.property('ingress');
      expect(nodes.policyTypes).to.deep.equal(['Ingress', 'Egress']);
      const rules: readonly NetworkRule[] = [nodes.ingress, nodes.egress, all.egress].flat();
      for (const { from, to, ports } of rules) {
        expect(ports).to.have.length.above(0);
        const peers = from ?? to ?? [];
        expect(peers).to.have.length.above(0);
        for (const { ipBlock, namespaceSelector, podSelector } of peers) {
          if (ipBlock) continue;
          expect(namespaceSelector?.matchLabels).to.have.key('kubernetes.io/metadata.name');
          // kustomize would add our own label to matchLabels, and no pod of others has it.
          expect(podSelector).to.have.all.keys('matchExpressions');
        }
      }
      const reached = nodes.ingress.flatMap(({ ports }: NetworkRule) => ports);
      expect(reached).to.deep.equal([{ port: 'http' }, { port: 'operators' }]);
    }
    expect(withExamples.match(/ipBlock/g)).to.have.length(3);
  });

  it('gives time to leave, and lets everybody know before', () => {
    const { periodSeconds, failureThreshold } = container.readinessProbe;
    expect(server.shutdownDelaySeconds).to.be.above(periodSeconds * failureThreshold);
    const patience = pod.terminationGracePeriodSeconds;
    expect(patience).to.be.above(server.shutdownDelaySeconds + CLOSING);
  });

  it('mounts the settings where the image looks, and the secrets that the docs tell to make', () => {
    expect(textOf('Dockerfile')).to.include('GATEHOUSE_CONFIG=/etc/gatehouse/gatehouse.yaml');
    const told = [...textOf('docs/operations.md').matchAll(/--from-file=(\S+?)=/g)];
    for (const { spec } of [deployment.spec.template, of('Job')[0].spec.template]) {
      const [settings, secrets] = spec.volumes;
      expect(settings.configMap.name).to.equal(generated.name);
      expect(generated.files).to.deep.equal(['gatehouse.yaml']);
      expect(secrets.secret.secretName).to.equal('gatehouse');
      const [{ env, volumeMounts }] = spec.containers;
      expect(volumeMounts.map(({ name }: { name: string }) => name)).to.deep.equal([
        ...[settings.name, secrets.name],
      ]);
      expect(volumeMounts[0].mountPath).to.equal('/etc/gatehouse');
      for (const { name, value } of env) {
        expect(VARIABLES).to.include(name);
        expect(path.dirname(value)).to.equal(volumeMounts[1].mountPath);
        expect(told.map(([, key]) => key)).to.include(path.basename(value));
      }
    }
  });

  it('runs the image that its digest names, as its user, on a file system that is read-only', () => {
    const [image] = kustomization.images;
    expect(image).to.have.all.keys('name', 'newName', 'digest');
    expect(image.name).to.equal(container.image);
    expect(image.digest).to.match(/^sha256:[0-9a-f]{64}$/);
    for (const { spec } of [deployment.spec.template, of('Job')[0].spec.template]) {
      const { runAsUser, runAsGroup } = spec.securityContext;
      expect(textOf('Dockerfile')).to.include(`USER ${runAsUser}:${runAsGroup}`);
      const [{ securityContext }] = spec.containers;
      expect(securityContext).to.deep.include({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
      });
    }
    const [, program = ''] = of('Job')[0].spec.template.spec.containers[0].command;
    expect(existsSync(path.join(ROOT, program))).to.equal(true);
  });
});

const systemdAnalyze: Requirement = {
  program: findProgram('systemd-analyze'),
  remedy: 'systemd-analyze (Debian package systemd)',
};

describeOn([systemdAnalyze], 'deploy/systemd', () => {
  const units = readdirSync(path.join(ROOT, 'deploy/systemd'));
  const unitText = (name: string): string => textOf(`deploy/systemd/${name}`);

  it('has units that systemd reads without a word', () => {
    const folder = temporaryDirectory('systemd');
    for (const name of units) {
      // It looks for the program, which this machine may have elsewhere.
      const here = unitText(name).replace(
        'ExecStart=/usr/bin/node',
        `ExecStart=${process.execPath}`,
      );
      writeFileSync(path.join(folder, name), here);
    }
    const files = units.map((name) => path.join(folder, name));
    const verify = ['-c', 'systemd-analyze verify "$@" 2>&1', 'sh', ...files];
    expect(execFileSync('sh', verify, { encoding: 'utf8' })).to.equal('');
  });

  it('starts Node as `npm start` and the image do', () => {
    const { start } = manifest.scripts;
    const [, variable = '', flags = ''] = /^(\S+) exec node (--.+?) --require/.exec(start) ?? [];
    const unit = unitText('gatehouse@.service');
    expect(unit).to.include(`Environment=${variable}\n`).and.include(`node ${flags} --require`);
    const image = textOf('Dockerfile');
    expect(image)
      .to.include(variable)
      .and.include(`"${flags.replaceAll(' ', '", "')}"`);
  });

  it('is left alone by systemd after wrong settings, which no restart mends', () => {
    const [, status] = /^const WRONG_SETTINGS = (\d+);$/m.exec(textOf('src/main.ts')) ?? [];
    expect(unitText('gatehouse@.service')).to.include(`\nRestartPreventExitStatus=${status}\n`);
  });

  it('starts and stops every process with gatehouse.target', () => {
    const unit = unitText('gatehouse@.service');
    expect(unit).to.include('\nPartOf=gatehouse.target\n');
    expect(unit).to.include('\nWantedBy=gatehouse.target\n');
    expect(unit, 'started means ready').to.include('\nType=notify\n');
  });

  for (const name of ['gatehouse@.service', 'gatehouse-import.service']) {
    it(`confines ${name}: an exposure of at most 1.3`, () => {
      const folder = temporaryDirectory('exposure');
      const file = path.join(folder, name);
      writeFileSync(file, unitText(name));
      const words = ['security', '--offline=true', '--threshold=13', file];
      expect(() => execFileSync('systemd-analyze', words)).not.to.throw();
    });
  }

  it('confines the import as it confines the service', () => {
    const confinement = (name: string) =>
      /^AmbientCapabilities=(?:\n.+)+/m.exec(unitText(name))?.[0].trim().split('\n');
    expect(confinement('gatehouse-import.service'))
      .to.deep.equal(confinement('gatehouse@.service'))
      .and.to.have.length.above(20);
  });

  it('gives a process time to leave', () => {
    const [, patience] = /^TimeoutStopSec=(\d+)$/m.exec(unitText('gatehouse@.service')) ?? [];
    const { server } = settingsIn('config/production.example.yaml');
    expect(Number(patience)).to.be.above(server.shutdownDelaySeconds + CLOSING);
  });
});
