/** The Kubernetes manifests are valid, complete, and consistent with the settings and the docs. */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { parse, parseAllDocuments } from 'yaml';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { CLOSING, ROOT, settingsIn, textOf, VARIABLES } from './shipped-files.ts';

/** A part of a manifest; a test compares each with the types of the API. */
type Part = ReturnType<typeof parse>;

describe('deploy/kubernetes', () => {
  const folder = path.join(ROOT, 'deploy/kubernetes');
  const read = (name: string) =>
    parseAllDocuments(readFileSync(path.join(folder, name), 'utf8')).map((one) => one.toJS());
  const [kustomization] = read('kustomization.yaml');
  const [generated] = kustomization.configMapGenerator;
  const manifests = kustomization.resources.flatMap(read);
  const of = (kind: string) => manifests.filter((one: Part) => one.kind === kind);
  const [deployment, operator] = of('Deployment');
  const { metadata, spec: pod } = deployment.spec.template;
  const [container] = pod.containers;
  const pods = [pod, operator.spec.template.spec];
  const containers = pods.flatMap((one) => [...(one.initContainers ?? []), ...one.containers]);
  const { server, storage } = settingsIn('deploy/kubernetes/gatehouse.yaml');
  const docs = readdirSync(path.join(ROOT, 'docs/operations'))
    .map((name) => textOf(`docs/operations/${name}`))
    .join('');

  it('deploy/kubernetes contains only manifests that the Kubernetes API accepts', () => {
    const files = ['kustomization.yaml', 'restore-redis.yaml', ...kustomization.resources, ...generated.files];
    expect(readdirSync(folder)).to.have.members(files);
    // Check against the types of the API, which refuse missing fields, wrong types and unknown fields.
    const checked = temporaryDirectory('kubernetes');
    symlinkSync(path.join(ROOT, 'node_modules'), path.join(checked, 'node_modules'));
    const lines = [...manifests, ...read('restore-redis.yaml')].map((manifest, index) => {
      const { apiVersion, kind } = manifest;
      const type = `import('kubernetes-models/${apiVersion}/${kind}').I${kind}`;
      return `export const a${index}: ${type} = ${JSON.stringify(manifest)};`;
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

  it('an init container of every node migrates the database', () => {
    expect(storage.autoMigrate).to.equal(false);
    const commands = pod.initContainers.map(({ command }: Part) => command);
    expect(commands).to.deep.equal([['gatehouse', 'migrate']]);
    expect(pod.initContainers[0].image).to.equal(container.image);
  });

  it('a pod for operator commands has the configuration of the nodes, and runs only on demand', () => {
    const [commands] = operator.spec.template.spec.containers;
    expect(operator.spec.replicas).to.equal(0);
    expect(commands.command).to.deep.equal(['sleep', 'infinity']);
    expect(commands.env).to.deep.equal(container.env);
    expect(commands.image).to.equal(container.image);
    expect(commands.volumeMounts).to.deep.equal(container.volumeMounts);
    expect(operator.spec.template.spec.volumes).to.deep.equal(pod.volumes);
  });

  it('the manifests contain every object that commands in the docs name', () => {
    const lines = docs.split('\n').filter((line) => line.startsWith('kubectl --namespace gatehouse '));
    const named = lines.flatMap((line) => line.match(/\bdeployment\/[a-z-]+|component=[a-z]+/g) ?? []);
    const present = of('Deployment').flatMap((one: typeof deployment) => [
      `deployment/${one.metadata.name}`,
      `component=${one.spec.template.metadata.labels['app.kubernetes.io/component']}`,
    ]);
    expect(present).to.include.members(named);
    expect(named).to.include.members(present.slice(0, 3));
    const replicas = docs.match(/deployment\/gatehouse --replicas=[1-9]/g) ?? [];
    const written = `deployment/gatehouse --replicas=${deployment.spec.replicas}`;
    expect(new Set(replicas)).to.deep.equal(new Set([written]));
  });

  it('selectors in the manifests match the nodes, but not the pod for operator commands', () => {
    const { matchLabels } = deployment.spec.selector;
    expect(metadata.labels).to.include(matchLabels);
    expect(operator.spec.template.metadata.labels).to.include(operator.spec.selector.matchLabels);
    expect(operator.spec.template.metadata.labels).to.not.include(matchLabels);
    const selectors = [
      ...of('Service').map(({ spec }: Part) => spec.selector),
      of('PodDisruptionBudget')[0].spec.selector.matchLabels,
      pod.topologySpreadConstraints[0].labelSelector.matchLabels,
    ];
    for (const selector of selectors) expect(selector).to.deep.equal(matchLabels);
  });

  it('the manifests refer by name to the ports on which the service listens', () => {
    const ports = [
      { name: 'http', containerPort: server.port },
      { name: 'operators', containerPort: server.operatorsPort },
    ];
    expect(container.ports).to.deep.equal(ports);
    const probes = [container.startupProbe, container.livenessProbe, container.readinessProbe];
    expect(probes.map(({ httpGet }) => `${httpGet.port}${httpGet.path}`)).to.deep.equal([
      'operators/healthz',
      'operators/healthz',
      'operators/readyz',
    ]);
    const targets = of('Service').flatMap((service: Part) =>
      service.spec.ports.map(({ targetPort }: Part) => targetPort),
    );
    expect(targets).to.deep.equal(['http', 'operators']);
  });

  it('network policies allow only named peers: other pods by namespace and label, with a port', () => {
    const text = readFileSync(path.join(folder, 'networkpolicy.yaml'), 'utf8');
    // Also check the examples in the comments.
    const withExamples = text.replaceAll(/^( +)# ( *(?:- to:|ports:|- ipBlock:|cidr:|except:).*)$/gm, '$1$2');
    for (const { spec } of [text, withExamples].map((one) => parse(one))) {
      // The empty selector applies to every pod of the namespace.
      expect(spec).to.deep.include({ podSelector: {}, policyTypes: ['Ingress', 'Egress'] });
      const rules: readonly Part[] = [...spec.ingress, ...spec.egress];
      for (const { from, to, ports } of rules) {
        expect(ports).to.have.length.above(0);
        const peers = from ?? to ?? [];
        expect(peers).to.have.length.above(0);
        for (const { ipBlock, namespaceSelector, podSelector } of peers) {
          if (ipBlock) continue;
          expect(namespaceSelector?.matchLabels).to.have.key('kubernetes.io/metadata.name');
          // Use matchExpressions: kustomize would add our own label to matchLabels, which pods of other software lack.
          expect(podSelector).to.have.all.keys('matchExpressions');
        }
      }
      const reached = spec.ingress.flatMap(({ ports }: Part) => ports);
      expect(reached).to.deep.equal([{ port: 'http' }, { port: 'operators' }]);
    }
    expect(withExamples.match(/ipBlock/g)).to.have.length(3);
  });

  it('a node has time to shut down, and the readiness probe notices the shutdown first', () => {
    const { periodSeconds, failureThreshold } = container.readinessProbe;
    expect(server.shutdownDelaySeconds).to.be.above(periodSeconds * failureThreshold);
    const timeoutFactor = pod.terminationGracePeriodSeconds;
    expect(timeoutFactor).to.be.above(server.shutdownDelaySeconds + CLOSING);
  });

  it('the pods mount the settings at the path of the image, and the secrets under their documented names', () => {
    expect(textOf('Dockerfile')).to.include('GATEHOUSE_CONFIG=/etc/gatehouse/gatehouse.yaml');
    expect(generated.files).to.deep.equal(['gatehouse.yaml']);
    const documented = [...docs.matchAll(/--from-file=(\S+?)=/g)].map(([, key]) => key);
    for (const { volumes, initContainers = [], containers: own } of pods) {
      const known = volumes.map(({ configMap, secret, emptyDir }: Part) =>
        emptyDir ? 'temporary' : (configMap?.name ?? secret?.secretName),
      );
      expect(known).to.have.ordered.members([generated.name, 'gatehouse', 'temporary'].slice(0, known.length));
      const [settings, secrets] = volumes;
      for (const { env, volumeMounts } of [...initContainers, ...own]) {
        const mounts = volumeMounts.map(({ name, mountPath }: Part) => [name, mountPath] as const);
        expect(volumes.map(({ name }: Part) => name)).to.include.members(mounts.map(([name]: Part) => name));
        const place = new Map(mounts);
        expect(place.get(settings?.name ?? '')).to.equal('/etc/gatehouse');
        for (const { name, value } of env) {
          expect(VARIABLES).to.include(name);
          expect(path.dirname(value)).to.equal(place.get(secrets?.name ?? ''));
          expect(documented).to.include(path.basename(value));
        }
      }
    }
  });

  it('the pods run the image by its digest, as the user of the image, on a read-only file system', () => {
    const [image] = kustomization.images;
    expect(image).to.have.all.keys('name', 'newName', 'digest');
    expect(image.name).to.equal(container.image);
    expect(image.digest).to.match(/^sha256:[0-9a-f]{64}$/);
    for (const { securityContext } of pods) {
      const { runAsUser, runAsGroup } = securityContext;
      expect(textOf('Dockerfile')).to.include(`USER ${runAsUser}:${runAsGroup}`);
      expect(securityContext).to.deep.equal(pod.securityContext);
    }
    for (const { securityContext } of containers) {
      expect(securityContext).to.deep.equal({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      });
    }
  });
});
