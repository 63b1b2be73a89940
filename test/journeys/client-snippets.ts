/** Runs the example programs copied from the page of a client, with a user who approves. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { symlinkSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import path from 'node:path';
import { expect } from 'chai';
import { said } from '../pages/client-owner.ts';
import { type SignedInPerson, signedIn } from '../pages/signed-in-person.ts';
import { atEndOfFile } from '../support/end-of-run.ts';
import { introspect, type TestClient } from '../support/oauth.ts';
import { findProgram, freePort } from '../support/programs.ts';
import { pythonWithAuthlib } from '../support/python.ts';
import { describeOn } from '../support/requirements.ts';
import { addTestClient } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { nameWarehouseApi } from '../support/warehouse-api.ts';

/** How a developer runs the example program of this name, and the file it is saved in. */
export interface Runtime {
  readonly name: string;
  /** Undefined if the language is not installed. */
  readonly program: string | undefined;
  readonly file: string;
}

/** Python itself is looked up or installed when a test needs it. */
export const PYTHON: Runtime = { name: 'Python', program: undefined, file: 'try.py' };

type Ready = Runtime & { readonly program: string };

const requirements = ['bash', 'curl', 'openssl', 'perl'].map((name) => ({
  program: findProgram(name),
  remedy: name,
}));

/** Runs a suite per language, with a service and a client of its own. */
export const describePrograms = (title: string, runtimes: readonly Runtime[]): void =>
  describeOn(requirements, title, () => suite(runtimes));

function suite(runtimes: readonly Runtime[]): void {
  const on = startSeeded();
  let owner: SignedInPerson;
  let folder: string;

  before(async () => {
    owner = await signedIn(on.service, on.seeded.other);
    await nameWarehouseApi(on);
    folder = temporaryDirectory('snippets');
    // Provide the dependencies of the example program, as a developer would have installed them.
    const installed = path.join(import.meta.dirname, '../../node_modules');
    symlinkSync(installed, path.join(folder, 'node_modules'));
  });

  for (const runtime of runtimes) {
    if (runtime !== PYTHON && runtime.program === undefined) {
      it(`the example in ${runtime.name} works (needs a program that runs ${runtime.file})`);
      continue;
    }
    describe(runtime.name, () => {
      it('the example program runs the OAuth flow, calls the API and revokes its tokens', async function () {
        await expectFlow(await installed(this, runtime));
      });

      it('the example program leaves the tokens valid if requested', async function () {
        const client = await addClient();
        const run = await start(await installed(this, runtime), client, { KEEP_TOKENS: '1' });
        await run.answer(await approve(await run.addressToOpen()));
        expect(await run.ended, run.output()).to.equal(0);
        expect(run.output()).to.include('Kept').and.not.include('Revoked');
        const token =
          run
            .output()
            .match(/gate_at_[\w-]{95}/g)
            ?.at(-1) ?? '';
        const { body } = await introspect(on.issuer, client, token);
        expect(body.active).to.equal(true);
      });

      it('the example program fails without the secret, with a wrong secret, and with the state of another request', async function () {
        const ready = await installed(this, runtime);
        const client = await addClient();
        const without = await start(ready, { ...client, secret: '' }, {});
        expect(await without.ended).not.to.equal(0);
        expect(without.output()).to.include('CLIENT_SECRET').and.not.include('Open this address');

        const wrong = await start(ready, { ...client, secret: `gate_cs_${'x'.repeat(43)}` }, {});
        await wrong.answer(await approve(await wrong.addressToOpen()));
        expect(await wrong.ended, wrong.output()).not.to.equal(0);
        expect(wrong.output()).not.to.match(/Exchanged|Refreshed|Revoked/);

        const foreign = await start(ready, client, {});
        const callback = await approve(await foreign.addressToOpen());
        callback.searchParams.set('state', 'state-of-another-request');
        await foreign.answer(callback);
        expect(await foreign.ended, foreign.output()).not.to.equal(0);
        expect(foreign.output()).not.to.include('Exchanged');
      });
    });
  }

  /** Adds the program that runs the file. */
  async function installed(context: Mocha.Context, runtime: Runtime): Promise<Ready> {
    const { program } = runtime;
    if (program !== undefined) return { ...runtime, program };
    const python = await pythonWithAuthlib();
    if ('program' in python) return { ...runtime, program: python.program };
    if (context.test) context.test.title += ` (${python.reason})`;
    return context.skip();
  }

  async function expectFlow(runtime: Ready): Promise<void> {
    const client = await addClient();
    const run = await start(runtime, client, {});
    const page = await run.answer(await approve(await run.addressToOpen()), true);
    expect(page).to.include(said('handed-over.title'));
    const status = await run.ended;
    const output = run.output();
    expect(status, output).to.equal(0);
    expect(output).to.match(/Exchanged.*Refreshed.*The API answered.*Revoked/s);
    // The program for curl prints one member of the JSON on a line.
    expect(output.replace(/\s/g, '')).to.include(`{"username":"${on.seeded.other.email}"}`);
    expect(output).not.to.include(client.secret);
    const accessTokens = new Set(output.match(/gate_at_[\w-]{95}/g));
    const refreshTokens = new Set(output.match(/gate_rt_[\w-]+/g));
    expect(accessTokens).to.have.lengthOf(2);
    expect(refreshTokens).to.have.lengthOf(2);
    for (const token of accessTokens) {
      const { body } = await introspect(on.issuer, client, token);
      expect(body).to.deep.equal({ active: false });
    }
  }

  const approve = (address: string): Promise<URL> => owner.authorize(address, on.seeded.other);

  async function addClient(): Promise<TestClient> {
    const redirectUri = `http://127.0.0.1:${await freePort()}/it's/$(id)`;
    const client = await addTestClient(on.service, 'Copied', {
      ownerAccountId: on.seeded.other.accountId,
      // The programs pick the redirect URI that they can listen on.
      redirectUris: ['https://partner.example/cb', redirectUri],
    });
    return { ...client, redirectUri };
  }

  /** Returns the text that the page's copy button copies. */
  async function programOn(client: TestClient, name: string): Promise<string> {
    const { html } = await owner.get(`/profile/oauth-clients/${client.id}/connect`);
    const shown = new RegExp(`<pre [^>]*The program for ${name}"[^>]*><code>([^]*?)</code></pre>`);
    const [, escaped = ''] = shown.exec(html) ?? [];
    const plain = escaped.replace(/<[^>]*>/g, '');
    return plain.replace(/&(amp|lt|gt|#34|#39);/g, (entity) => ENTITIES[entity] ?? entity);
  }

  async function start({ name, program, file }: Ready, client: TestClient, environment: NodeJS.ProcessEnv) {
    writeFileSync(path.join(folder, file), await programOn(client, name));
    const { PATH, HOME } = process.env;
    const secret = client.secret && { CLIENT_SECRET: client.secret };
    const child = spawn(program, [file], {
      cwd: folder,
      env: { PATH, HOME, ...secret, ...environment },
    });
    atEndOfFile(() => void child.kill());
    let output = '';
    const keep = (text: Buffer): void => {
      output += text;
    };
    child.stdout.on('data', keep);
    child.stderr.on('data', keep);
    const ended = once(child, 'close').then(([status]) => Number(status ?? 1));
    return {
      ended,
      output: () => output,
      /**
       * Opens the callback like a browser, and returns the page. `startsIdle`: first opens a
       * connection that stays unused.
       */
      async answer(callback: URL, startsIdle = false): Promise<string> {
        const idle = startsIdle && connect(Number(callback.port), callback.hostname).on('error', () => {});
        const page = await (await fetch(callback)).text();
        if (idle) idle.destroy();
        return page;
      },
      /** Waits for the authorization URL in the output. */
      async addressToOpen(): Promise<string> {
        for (;;) {
          const [, address] = /approve:\s+(http\S+)\s/.exec(output) ?? [];
          if (address !== undefined) return address;
          const more = [child.stdout, child.stderr].map((stream) => once(stream, 'data'));
          const isOver = await Promise.race([ended, ...more.map((next) => next.then(() => false))]);
          if (isOver !== false) throw new Error(`${program} ended: ${output}`);
        }
      },
    };
  }
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&amp;': '&',
  '&lt;': '<',
  '&gt;': '>',
  '&#34;': '"',
  '&#39;': "'",
};
