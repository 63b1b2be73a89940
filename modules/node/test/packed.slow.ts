/** The package as another project installs it, and the example of its guide. */
import { execFile } from 'node:child_process';
import { cpSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { eventually } from '../../../test/support/eventually.ts';
import { ask } from '../../../test/support/oauth.ts';
import { freePort, type Program, startProgram } from '../../../test/support/programs.ts';
import { startSeeded } from '../../../test/support/seeded.ts';
import { temporaryDirectory } from '../../../test/support/temporary-directory.ts';

const ROOT = path.join(import.meta.dirname, '../../..');
const GUIDE = path.join(ROOT, 'docs/graphql-api.md');

describe('the packed library gatehouse/resource-server', () => {
  const project = temporaryDirectory('api');

  before(async () => {
    const tarball = await pack();
    writeFileSync(path.join(project, 'package.json'), '{ "private": true }');
    // The two packages of the example come from our node_modules: that needs no registry. All other
    // packages are missing, so that a dependency of Gatehouse itself would make the tests fail.
    const others = ['graphql', 'graphql-http'].map((name) => path.join(ROOT, 'node_modules', name));
    const flags = ['--offline', '--install-links', '--ignore-scripts', '--omit=dev'];
    await npm(['install', ...flags, tarball, ...others], project);
  });

  it('the packed library contains JavaScript, declarations and a README, and needs no other package', () => {
    const installed = path.join(project, 'node_modules/gatehouse');
    const manifest = JSON.parse(readFileSync(path.join(installed, 'package.json'), 'utf8'));
    expect(manifest).to.not.have.any.keys('private', 'scripts', 'dependencies', 'devDependencies');
    expect(manifest.version).to.equal(versionOf(ROOT));
    const modules = readdirSync(path.join(project, 'node_modules'));
    const packages = modules.filter((name) => !name.startsWith('.'));
    expect(packages.sort()).to.deep.equal(['gatehouse', 'graphql', 'graphql-http']);
    const files = ['LICENSE', 'README.md', 'lib', 'package.json'];
    expect(readdirSync(installed).sort()).to.deep.equal(files);
  });

  it('the types of the packed library need no types of other packages, with import and with require', async () => {
    const tsc = path.join(ROOT, 'node_modules/typescript/bin/tsc');
    const usual = ['--noEmit', '--strict', '--target', 'es2022', '--types', ''];
    const names = ['typed.ts', 'typed.mts', 'typed.cts'];
    for (const name of names) writeFileSync(path.join(project, name), TYPED);
    const byBundler = ['--module', 'preserve', '--moduleResolution', 'bundler'];
    for (const flags of [['--module', 'node16'], ['--module', 'nodenext'], byBundler]) {
      await run(process.execPath, [tsc, ...usual, ...flags, ...names], { cwd: project });
    }
  });

  it('import and require load the same module of the packed library', async () => {
    const file = path.join(project, 'both.mjs');
    writeFileSync(
      file,
      `import { createRequire } from 'node:module';
       import { CallerRefused } from 'gatehouse/resource-server';
       const required = createRequire(import.meta.url)('gatehouse/resource-server');
       if (required.CallerRefused !== CallerRefused) throw new Error('two classes');`,
    );
    await run(process.execPath, [file], { cwd: project });
  });

  describe('the example program of the guide', () => {
    const on = startSeeded();
    let url: URL;
    let api: Program;

    before(async () => {
      const port = await freePort();
      url = new URL(`http://localhost:${port}`);
      const file = path.join(project, 'api.mjs');
      const usual = "'http://localhost:3000'";
      const example = replaceOnce(exampleOfGuide(), usual, `'${on.issuer}'`);
      writeFileSync(file, replaceOnce(example, '.listen(4002)', `.listen(${port})`));
      const { id, secret } = on.clients.resourceServer;
      api = startProgram(process.execPath, [file], {
        cwd: project,
        environment: { PATH: process.env.PATH, CLIENT_ID: id, CLIENT_SECRET: secret },
      });
      await api.waitUntil(() => fetch(url));
    });
    after(() => api?.end('SIGTERM'));

    it('the installed example of the guide protects a GraphQL API', async () => {
      const { accessToken: token } = await on.partner.tokens(on.clients.confidential);
      const { id, name } = on.seeded.warehouse;

      const anonymous = await query('{ warehouses { id } }');
      expect(anonymous.status).to.equal(401);
      expect(anonymous.headers.get('www-authenticate')).to.equal('Bearer');

      const listed = await query('{ warehouses { id name } }', token);
      expect(listed.body).to.deep.equal({ data: { warehouses: [{ id, name }] } });

      const receive = (warehouse: string, count: number) =>
        query(`mutation { receive(warehouse: "${warehouse}", article: "x", count: ${count}) }`, token);
      expect((await receive(id, 3)).body).to.deep.equal({ data: { receive: 3 } });
      expect((await receive(id, 4)).body).to.deep.equal({ data: { receive: 7 } });
      const foreign = await receive('wh_elsewhere', 1);
      expect(foreign.body).to.have.nested.property('errors[0].extensions.code', 'FORBIDDEN');

      await on.service.accounts.suspend(on.seeded.person.accountId);
      expect(await query('{ warehouses { id } }', token)).to.include({ status: 401 });
    });

    /** Retries: on a busy machine a look-up may exceed the program's timeout of a second. */
    const query = (text: string, token?: string) =>
      eventually(async () => {
        const answer = await ask(url, {
          method: 'POST',
          headers: {
            'content-type': 'application/json',
            ...(token !== undefined && { authorization: `Bearer ${token}` }),
          },
          body: JSON.stringify({ query: text }),
        });
        expect(answer.status).not.to.equal(503);
        return answer;
      });
  });
});

const TYPED = `
import {
  type Caller, createIntrospector, mayReach, protect, requireRight,
} from 'gatehouse/resource-server';

const introspector = createIntrospector({ issuer: 'a', clientId: 'b', clientSecret: 'c' });
protect(introspector);

export async function accountOf(request: { headers: Record<string, string> }): Promise<string> {
  const { caller, refusal } = await introspector.identify(request);
  if (refusal) throw new Error(refusal.body);
  requireRight(caller, 'wh_a', 'write');
  return caller.method === 'client_credentials' ? caller.clientId : caller.accountId;
}

export function wrong(caller: Caller): void {
  // @ts-expect-error not every caller has an account
  caller.accountId;
  // @ts-expect-error there is no such right
  mayReach(caller, 'wh_a', 'fly');
}
`;

/** Packs a copy of the sources, so that other tests do not see a changing checkout. */
async function pack(): Promise<string> {
  const checkout = temporaryDirectory('pack');
  for (const name of ['package.json', 'tsconfig.json', 'LICENSE', 'modules/node']) {
    cpSync(path.join(ROOT, name), path.join(checkout, name), { recursive: true });
  }
  symlinkSync(path.join(ROOT, 'node_modules'), path.join(checkout, 'node_modules'));
  await npm(['run', 'pack'], checkout);
  return path.join(checkout, `gatehouse-${versionOf(ROOT)}.tgz`);
}

const versionOf = (directory: string): string =>
  JSON.parse(readFileSync(path.join(directory, 'package.json'), 'utf8')).version;

function exampleOfGuide(): string {
  const [, example] = /```js\n(.*?)```/s.exec(readFileSync(GUIDE, 'utf8')) ?? [];
  if (example === undefined) throw new Error('the guide has no example');
  return example;
}

function replaceOnce(text: string, part: string, replacement: string): string {
  expect(text.split(part), part).to.have.lengthOf(2);
  return text.replace(part, replacement);
}

/** Runs a program, and fails with its standard output, because compilers print errors there. */
async function run(...asked: Parameters<typeof execute>): Promise<void> {
  const fail = (error: { stdout?: string }): void => expect.fail(error.stdout || String(error));
  await execute(...asked).catch(fail);
}
const execute = promisify(execFile);

const npm = (args: readonly string[], cwd: string) => run('npm', [...args], { cwd });
