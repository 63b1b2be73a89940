/** Builds and runs the image of the Dockerfile without a container daemon or an image registry. */
import { execFile, execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, copyFileSync, cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { findProgram, type Program, runsAsRoot, startProgram } from '../support/programs.ts';
import { type Requirement, required } from '../support/requirements.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const run = promisify(execFile);
const ROOT = path.join(import.meta.dirname, '../..');

const program = (name: string, remedy = `${name} (Debian package ${name})`): Requirement => ({
  program: findProgram(name),
  remedy,
});
const buildah = program('buildah');
const mmdebstrap = program('mmdebstrap');

/** Requirements of suites that build and run an image, for `describeOn`. */
export const containerTools: readonly Requirement[] = [
  buildah,
  mmdebstrap,
  program('unshare', 'unshare (Debian package util-linux)'),
  { program: runsAsRoot ? 'root' : undefined, remedy: 'root, who may mount' },
];

interface ImageConfig {
  readonly User: string;
  readonly Env: readonly string[];
  readonly Cmd: readonly string[];
  readonly WorkingDir: string;
  readonly StopSignal: NodeJS.Signals;
  readonly Labels: Readonly<Record<string, string>>;
  readonly Healthcheck: { readonly Test: readonly [kind: string, ...command: string[]] };
}

export interface Image {
  readonly config: ImageConfig;
  /** The folder of this machine with the files of the image. */
  readonly files: string;
  /**
   * Starts a command as in a container: as the image's user, as process 1 of its own namespace, on a
   * read-only root file system, without gaining privileges. The network is that of this machine.
   */
  start(command: readonly string[], options: ContainerOptions): Program;
}

interface ContainerOptions {
  readonly environment?: Readonly<Record<string, string>>;
  readonly user?: string;
  /** Folders of this machine, keyed by the paths at which they are mounted. */
  readonly volumes?: Readonly<Record<string, string>>;
}

/** The Debian packages that Node, npm and a shell need: a subset of the real base. */
const PACKAGES = [
  'base-files',
  'base-passwd',
  'ca-certificates',
  'coreutils',
  'dash',
  'findutils',
  'libc-bin',
  'libgcc-s1',
  'libstdc++6',
];

/** Builds a base image with the name in the Dockerfile. @returns buildah, with the arguments that build the image */
async function buildBase() {
  const folder = temporaryDirectory('image');
  const store = ['--root', path.join(folder, 'store'), '--runroot', path.join(folder, 'run')];
  const buildahRun = async (...args: string[]): Promise<string> => {
    const options = [...store, '--storage-driver', 'vfs', ...args];
    const { stdout } = await run(required(buildah), options, { maxBuffer: 64 * 1024 * 1024 });
    return stdout.trim();
  };
  const dockerfile = readFileSync(path.join(ROOT, 'Dockerfile'), 'utf8');
  const [, base = '', suite = ''] = /^ARG NODE_IMAGE=(node:\d+-([a-z]+)-slim)$/m.exec(dockerfile) ?? [];
  const npmrc = path.join(folder, 'npmrc');
  writeFileSync(npmrc, npmSettings());
  const context = await baseContext(path.join(folder, 'base'), suite);
  await buildahRun('bud', '--isolation', 'chroot', '--tag', `docker.io/library/${base}`, context);
  const args = [
    'bud',
    '--isolation',
    'chroot',
    '--pull-never',
    '--format',
    'docker',
    '--secret',
    `id=npmrc,src=${npmrc}`,
  ];
  return { folder, buildahRun, args };
}

/**
 * Builds the image of each folder on one base.
 *
 * @param time Unix seconds, for all files
 * @returns digests of the layers and the configuration, without the random host name that buildah writes
 */
export async function imageDigests(folders: readonly string[], time: number): Promise<readonly string[]> {
  const { buildahRun, args } = await buildBase();
  const digests = [];
  for (const folder of folders) {
    await buildahRun(...args, '--no-cache', '--timestamp', `${time}`, '--tag', 'built', folder);
    const { Docker } = JSON.parse(await buildahRun('inspect', '--type', 'image', 'built'));
    const { container, container_config, ...bits } = Docker;
    const text = JSON.stringify({ ...bits, config: { ...bits.config, Hostname: '' } });
    digests.push(createHash('sha256').update(text).digest('hex'));
  }
  return digests;
}

/** Builds a base image, then the image itself. */
export async function buildImage(): Promise<Image> {
  const { folder, buildahRun, args } = await buildBase();
  await buildahRun(...args, '--tag', 'gatehouse', ROOT);
  const inspected = JSON.parse(await buildahRun('inspect', '--type', 'image', 'gatehouse'));
  const config: ImageConfig = inspected.Docker.config;
  const files = await buildahRun('mount', await buildahRun('from', '--pull-never', 'gatehouse'));
  // Write this file here, because container runtimes provide it.
  writeFileSync(path.join(files, 'etc/hosts'), '127.0.0.1 localhost\n::1 localhost\n');
  const compiled = path.join(folder, 'compiled');
  mkdirSync(compiled);
  chmodSync(compiled, 0o777);
  return { config, files, start: starterOf(files, config, compiled) };
}

/** Creates the content of Node's image: Debian with Node and npm in /usr/local. */
async function baseContext(folder: string, suite: string): Promise<string> {
  mkdirSync(folder);
  const archive = path.join(folder, 'debian.tar');
  const packages = `--include=${PACKAGES.join(',')}`;
  await run(required(mmdebstrap), ['--quiet', '--variant=extract', packages, suite, archive]);
  copyFileSync(process.execPath, path.join(folder, 'node'));
  cpSync(npmFolder(), path.join(folder, 'npm'), { recursive: true, dereference: true });
  copyFileSync(authorities() ?? '/dev/null', path.join(folder, 'authorities.pem'));
  writeFileSync(
    path.join(folder, 'Containerfile'),
    `FROM scratch
ADD debian.tar /
COPY node /usr/local/bin/
COPY npm /usr/local/lib/node_modules/npm
COPY authorities.pem ${AUTHORITIES}
RUN ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm
RUN echo 'node:x:1000:1000::/home/node:/bin/sh' > /etc/passwd && install -d -o 1000 ${HOME}
`,
  );
  return folder;
}

function npmFolder(): string {
  const { npm_execpath: program } = process.env;
  return program ? path.join(program, '../..') : path.join(npmSays('root', '--global').trim(), 'npm');
}

/** The file in the base with the CA certificates with which this machine trusts its npm registry. */
const AUTHORITIES = '/usr/local/etc/authorities.pem';

/** Returns the npm settings with which this machine reaches its registry: the build secret of the Dockerfile. */
function npmSettings(): string {
  const known = npmConfig();
  const passed = ['registry', 'proxy', 'https-proxy', 'noproxy', 'strict-ssl']
    .filter((name) => known[name] !== null && known[name] !== '')
    .map((name) => `${name}=${known[name]}`);
  return [...passed, ...(authorities() ? [`cafile=${AUTHORITIES}`] : []), ''].join('\n');
}

const authorities = (): string | undefined =>
  [npmConfig().cafile, process.env.NODE_EXTRA_CA_CERTS].map(String).find((name) => existsSync(name));

const npmConfig = (): Readonly<Record<string, unknown>> => JSON.parse(npmSays('config', 'list', '--long', '--json'));

const npmSays = (...args: string[]): string =>
  execFileSync('npm', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });

/** The home directory, which container runtimes set unless the image does. */
const HOME = '/home/node';
const COMPILED = '/run/compiled';
const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

const ENTER = `
mount --bind "$ROOT" "$ROOT" && mount -o remount,bind,ro "$ROOT" &&
mount -t proc proc "$ROOT/proc" && mount --rbind /dev "$ROOT/dev" &&
while read -r target source; do mount --bind "$source" "$ROOT$target"; done <"$VOLUMES" &&
exec setpriv --no-new-privs chroot --userspec="$USER" --groups= "$ROOT" env -i "$@"`;

/** @param compiled a folder in which one command finds what an earlier one compiled, which saves seconds of each */
const starterOf =
  (files: string, { User, Env, WorkingDir }: ImageConfig, compiled: string): Image['start'] =>
  (command, { environment = {}, user = User, volumes: given = {} }) => {
    const volumes = { ...given, [COMPILED]: compiled };
    const own = [`HOME=${HOME}`, `PATH=${PATH}`, `NODE_COMPILE_CACHE=${COMPILED}`, ...Env];
    const variables = Object.entries(environment).map(([name, value]) => `${name}=${value}`);
    const entered = ['-C', WorkingDir, ...own, ...variables, ...command];
    const list = path.join(temporaryDirectory('volumes'), 'list');
    const mounts = Object.entries(volumes).map((mount) => `${mount.join(' ')}\n`);
    writeFileSync(list, mounts.join(''));
    for (const target of Object.keys(volumes)) mkdirSync(path.join(files, target), { recursive: true });
    const namespaces = ['--mount', '--pid', '--fork', '--kill-child'];
    return startProgram('unshare', [...namespaces, 'sh', '-c', ENTER, 'sh', ...entered], {
      cwd: files,
      environment: { PATH: process.env.PATH, ROOT: files, USER: user, VOLUMES: list },
    });
  };
