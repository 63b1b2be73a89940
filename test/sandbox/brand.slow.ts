/** The sandbox with the look of the operator. */
import { mkdtempSync, readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect } from 'chai';
import { startGatehouse } from '../../examples/sandbox/gatehouse.ts';
import { logoFile, png } from '../config/brand-files.ts';
import { fileWith } from '../config/configuration.ts';
import { atEndOfFile } from '../support/end-of-run.ts';
import { freePort } from '../support/programs.ts';

describe('the sandbox', () => {
  it('the sandbox shows the brand of the settings file, and takes nothing else from it', async () => {
    const picture = png(240, 60);
    logoFile('sandbox.png', picture);
    const lookOf = fileWith(
      'issuer: https://auth.example.com\nbrand: { name: Acme, logo: sandbox.png }\n',
      'sandbox.yaml',
    );
    const stop = new AbortController().signal;
    const apiUrl = 'http://127.0.0.1:1/graphql';
    const gatehouse = await startGatehouse({ port: await freePort(), apiUrl, stop, lookOf });
    atEndOfFile(gatehouse.close);
    const html = await (await fetch(`${gatehouse.issuer}/login`)).text();
    expect(html).to.include('<title>Sign in · Acme</title>').and.include('alt="Acme"');
    const [, logo = ''] = /src="(\/assets\/logo[^"]+)"/.exec(html) ?? [];
    const answer = await fetch(gatehouse.issuer + logo);
    expect(Buffer.from(await answer.arrayBuffer())).to.deep.equal(picture);
  });

  it('a settings file that cannot be read stops the sandbox before it makes a directory', async () => {
    const before = process.env.TMPDIR;
    const empty = mkdtempSync(path.join(tmpdir(), 'sandbox-test-'));
    process.env.TMPDIR = empty;
    const stop = new AbortController().signal;
    const parts = { port: 1, apiUrl: 'http://127.0.0.1:1/graphql', stop, lookOf: 'none.yaml' };
    const error = await startGatehouse(parts).catch(({ code }) => code);
    if (before === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = before;
    expect(error).to.equal('ENOENT');
    expect(readdirSync(empty)).to.deep.equal([]);
  });
});
