/** The programs on the page of a client, copied from there and run, with a person who approves. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { type SignedInPerson, signedIn } from '../pages/signed-in-person.ts';
import { introspect, type TestClient } from '../support/oauth.ts';
import { findProgram } from '../support/programs.ts';
import { pythonWithAuthlib } from '../support/python.ts';
import { describeOn } from '../support/requirements.ts';
import { startSeeded } from '../support/seeded.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const PLAIN_URI = 'https://partner.example';
const REDIRECT_URIS = {
  // What it may hold that means something to a shell, inside quotes, or to a library.
  'a redirect URI that could be taken for code':
    "https://partner.example/it's/$(id)/;&!=+,@~:[x]/?y=$(id)&z=%22",
  'a redirect URI without a path': PLAIN_URI,
};

/** What a developer runs the program of this name with, and the name it is saved under. */
interface Runtime {
  readonly name: string;
  readonly program: string;
  readonly file: string;
}

const RUNTIMES = {
  curl: { name: 'curl', program: 'bash', file: 'try.sh' },
  Node: { name: 'Node', program: process.execPath, file: 'try.mjs' },
} as const satisfies Record<string, Runtime>;

const withPython = (program: string): Runtime => ({ name: 'Python', program, file: 'try.py' });

const needed = ['bash', 'curl', 'openssl'].map((name) => ({
  program: findProgram(name),
  remedy: name,
}));

describeOn(needed, 'the ready-to-run programs of a client', () => {
  const on = startSeeded();
  let owner: SignedInPerson;
  let folder: string;

  before(async () => {
    owner = await signedIn(on.service, on.seeded.other);
    folder = temporaryDirectory('snippets');
    // Where a developer would have installed what the program says that it needs.
    const installed = path.join(import.meta.dirname, '../../node_modules');
    symlinkSync(installed, path.join(folder, 'node_modules'));
  });

  for (const [title, redirectUri] of Object.entries(REDIRECT_URIS)) {
    for (const runtime of ['curl', 'Node'] as const) {
      it(`${runtime}: goes through the flow, with ${title}`, () =>
        expectFlow(RUNTIMES[runtime], redirectUri));
    }

    it(`Python: goes through the flow, with ${title}`, async function () {
      this.timeout(180_000);
      const python = await pythonWithAuthlib();
      if ('reason' in python) {
        if (this.test) this.test.title += ` (${python.reason})`;
        this.skip();
      }
      await expectFlow(withPython(python.program), redirectUri);
    });
  }

  it('none of them asks for anything without the secret', async () => {
    const client = await addClient(PLAIN_URI);
    for (const runtime of await allRuntimes()) {
      const run = await start(runtime, client, {});
      expect(await run.ended, runtime.name).not.to.equal(0);
      expect(run.output()).to.include('CLIENT_SECRET').and.not.include('Open this address');
    }
  });

  it('none of them takes the answer to another request', async () => {
    const client = await addClient(PLAIN_URI);
    for (const runtime of await allRuntimes()) {
      const run = await start(runtime, client, secretOf(client));
      const callback = await approve(await run.addressToOpen());
      callback.searchParams.set('state', 'of-somebody-else');
      run.answer(callback.href);
      expect(await run.ended, runtime.name).not.to.equal(0);
      expect(run.output()).not.to.include('Exchanged');
    }
  });

  async function allRuntimes(): Promise<Runtime[]> {
    const python = await pythonWithAuthlib();
    return [
      ...Object.values(RUNTIMES),
      ...('program' in python ? [withPython(python.program)] : []),
    ];
  }

  async function expectFlow(runtime: Runtime, redirectUri: string): Promise<void> {
    const client = await addClient(redirectUri);
    const run = await start(runtime, client, secretOf(client));
    const callback = await approve(await run.addressToOpen());
    run.answer(callback.href);
    const status = await run.ended;
    const output = run.output();
    expect(status, output).to.equal(0);
    expect(output).to.match(/Exchanged.*Refreshed.*Revoked/s);
    expect(output).not.to.include(client.secret);
    const accessTokens = new Set(output.match(/gate_at_[\w-]{89}/g));
    const refreshTokens = new Set(output.match(/gate_rt_[\w-]+/g));
    expect(accessTokens).to.have.lengthOf(2);
    expect(refreshTokens).to.have.lengthOf(2);
    for (const token of accessTokens) {
      const { body } = await introspect(on.issuer, client, token);
      expect(body).to.deep.equal({ active: false });
    }
  }

  const secretOf = ({ secret = '' }: TestClient) => ({ CLIENT_SECRET: secret });

  const approve = (address: string): Promise<URL> => owner.authorize(address, on.seeded.other);

  async function addClient(redirectUri: string): Promise<TestClient> {
    const { client, secret = '' } = await on.service.clients.add({
      ...{ kind: 'confidential', name: 'Copied', isNative: false, redirectUris: [redirectUri] },
      ownerAccountId: on.seeded.other.accountId,
    });
    return { id: client.id, secret, redirectUri };
  }

  /** The text that the copy button of the page would copy. */
  async function programOn(client: TestClient, name: string): Promise<string> {
    const { html } = await owner.get(`/profile/oauth-clients/${client.id}`);
    const shown = new RegExp(`<pre [^>]*The flow with ${name}"[^>]*><code>([^]*?)</code></pre>`);
    const [, escaped = ''] = shown.exec(html) ?? [];
    return escaped.replace(/&(amp|lt|gt|#34|#39);/g, (entity) => ENTITIES[entity] ?? entity);
  }

  async function start(
    { name, program, file }: Runtime,
    client: TestClient,
    environment: NodeJS.ProcessEnv,
  ) {
    writeFileSync(path.join(folder, file), await programOn(client, name));
    const { PATH } = process.env;
    const child = spawn(program, [file], { cwd: folder, env: { PATH, ...environment } });
    let output = '';
    const keep = (text: Buffer): void => {
      output += text;
    };
    child.stdout.on('data', keep);
    child.stderr.on('data', keep);
    const ended = once(child, 'close').then(([status]) => Number(status));
    return {
      ended,
      output: () => output,
      answer: (text: string) => child.stdin.end(`${text}\n`),
      /** The address that it prints, as soon as it does. */
      async addressToOpen(): Promise<string> {
        for (;;) {
          const [, address] = /approve:\s+(http\S+)\s/.exec(output) ?? [];
          if (address !== undefined) return address;
          const isOver = await Promise.race([ended, once(child.stdout, 'data').then(() => false)]);
          if (isOver !== false) throw new Error(`${program} ended: ${output}`);
        }
      },
    };
  }
});

const ENTITIES: Readonly<Record<string, string>> = {
  '&amp;': '&',
  '&lt;': '<',
  '&gt;': '>',
  '&#34;': '"',
  '&#39;': "'",
};
