/** The Python package that `pip` installs: its types, and the programs of its README. */
import { execFile } from 'node:child_process';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { revokeCurrent } from '../support/oauth.ts';
import { createOpened } from '../support/opened.ts';
import { freePort, type Program, startProgram } from '../support/programs.ts';
import { pythonWith } from '../support/python.ts';
import { startSeeded } from '../support/seeded.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { MODULE } from './python.ts';

const PACKAGES = [
  'fastapi==0.165.0',
  'uvicorn==0.54.0',
  'flask==3.1.3',
  'django==5.2.19',
  'httpx==0.28.1',
  'mypy==2.4.1',
  'setuptools==84.2.1',
];
const run = promisify(execFile);
const readme = readFileSync(path.join(MODULE, 'README.md'), 'utf8');

describe('the Python package is typed, and its README has working programs', () => {
  const on = startSeeded();
  const opened = createOpened();
  const folder = temporaryDirectory('python-package');
  let program: string;

  before(async function () {
    const found = await pythonWith(PACKAGES);
    if ('reason' in found) {
      console.error(found.reason);
      return this.skip();
    }
    program = found.program;
    // Building writes into the folder of the sources.
    const sources = path.join(folder, 'sources');
    cpSync(MODULE, sources, { recursive: true });
    const options = ['--quiet', '--no-deps', '--no-build-isolation', '--target', folder];
    await run(program, ['-m', 'pip', 'install', ...options, sources]);
  });
  afterEach(opened.closeAll);

  it('the package and its types pass mypy --strict', async () => {
    writeFileSync(
      path.join(folder, 'use.py'),
      'from gatehouse import Caller, Gatehouse, Settings, from_wsgi\n' +
        'def caller(gate: Gatehouse) -> Caller:\n    return gate.authenticate(from_wsgi({}))\n',
    );
    const env = { ...process.env, MYPYPATH: folder };
    const { stdout } = await run(program, ['-m', 'mypy', '--strict', 'use.py', 'gatehouse'], {
      cwd: folder,
      env,
    });
    expect(stdout).to.match(/^Success: no issues found in 12 source files/);
  });

  for (const { file, args } of [
    { file: 'fastapi_api.py', args: ['-m', 'uvicorn', 'fastapi_api:app', '--port'] },
    { file: 'flask_api.py', args: ['-m', 'flask', '--app', 'flask_api', 'run', '--port'] },
    { file: 'django_api.py', args: ['django_api.py', 'runserver', '--noreload'] },
  ]) {
    it(`the program ${file} in the README answers authenticated callers and refuses others`, async () => {
      const source = readme.split(`\`${file}\``)[1]?.split('```python\n')[1]?.split('```')[0];
      writeFileSync(path.join(folder, file), source ?? '');
      const port = await freePort();
      const { id, secret } = on.clients.resourceServer;
      const environment = {
        ...process.env,
        PYTHONPATH: folder,
        ISSUER: on.issuer,
        CLIENT_ID: id,
        CLIENT_SECRET: secret,
      };
      const api: Program = startProgram(program, [...args, `${port}`], {
        cwd: folder,
        environment,
      });
      await opened.add(Promise.resolve(api), (started) => started.end('SIGTERM'));
      const call = (place: string, token?: string): Promise<Response> =>
        fetch(`http://127.0.0.1:${port}/stock/${place}`, {
          headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
        });
      const answerTo = async (place: string, token?: string): Promise<object> => {
        const { status, headers } = await call(place, token);
        return { status, challenge: headers.get('WWW-Authenticate')?.replace(/, .*/, '') };
      };
      const { warehouse } = on.seeded;
      await api.waitUntil(() => call(warehouse.id));
      const { accessToken } = await on.partner.tokens(on.clients.confidential);
      const accepted = await call(warehouse.id, accessToken);
      const body = { warehouse: warehouse.id, method: 'authorization_code' };
      expect(await accepted.json()).to.deep.equal(body);
      expect(await answerTo(warehouse.id)).to.deep.equal({ status: 401, challenge: 'Bearer' });
      expect(await answerTo('wh_other', accessToken)).to.deep.equal({
        status: 403,
        challenge: 'Bearer error="insufficient_scope"',
      });
      await revokeCurrent(on.issuer, accessToken);
      expect(await answerTo(warehouse.id, accessToken)).to.deep.equal({
        status: 401,
        challenge: 'Bearer error="invalid_token"',
      });
    });
  }
});
