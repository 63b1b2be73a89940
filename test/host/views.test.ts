/** Every view, rendered over a real socket with ordinary, empty and hostile data. */
import { once } from 'node:events';
import { cpSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import Koa from 'koa';
import { assetUrls } from '../../src/host/assets.ts';
import { createRender } from '../../src/host/views.ts';
import { documentedErrors, errorReference } from '../../src/pages/error-reference.ts';
import type { Render, ViewData, ViewName } from '../../src/pages/view-data.ts';
import { inEnglish, languages } from '../../src/texts/texts.ts';
import { PSEUDO, pseudoLanguage } from '../support/pseudo-language.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { readViewSamples, type ViewSamples } from './view-samples.ts';

const viewsDirectory = new URL('../../views/', import.meta.url);

/** Markup, a template, controls of the writing direction, and 200 characters without a space. */
const HOSTILE = [
  `<img src=x onerror=alert(1)>"'><script>alert(1)</script>`,
  '<%= process.env %><%- 1 %>',
  '\u202e\u2066مستودع الميناء\u0000',
  'x'.repeat(200),
].join('');

describe('views', () => {
  let server: Server;
  let origin: string;
  let draw: (ctx: Koa.Context) => Promise<void>;
  let samples: ViewSamples;

  before(async () => {
    samples = readViewSamples();
    const app = new Koa();
    app.silent = true;
    app.on('error', (error) => console.error(error));
    app.use((ctx) => draw(ctx));
    server = app.listen(0, '127.0.0.1');
    await once(server, 'listening');
    origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });

  after(() => server.close());

  async function page<Name extends ViewName>(
    name: Name,
    data: ViewData[Name],
    who?: string,
    language?: string,
  ): Promise<string> {
    draw = (ctx) => renderFor(who, language)(ctx, name, data);
    const response = await fetch(origin);
    const html = await response.text();
    expect(response.status, name).to.equal(200);
    expect(response.headers.get('content-type')).to.equal('text/html; charset=utf-8');
    return html;
  }

  it('each file in views/ has a TypeScript type, and each type has a file', () => {
    const files = readdirSync(viewsDirectory).filter((name) => name.endsWith('.ejs'));
    const names = Object.keys(samples).map((name) => `${name}.ejs`);
    expect(files.sort(), 'write views/<name>.ejs').to.deep.equal(names.sort());
  });

  it('views and their includes are read at the start, so later changes of the files have no effect', async () => {
    const root = fileURLToPath(new URL('../../', import.meta.url));
    const copy = temporaryDirectory('views');
    for (const name of ['src', 'views', 'config', 'package.json']) {
      cpSync(path.join(root, name), path.join(copy, name), { recursive: true });
    }
    symlinkSync(path.join(root, 'node_modules'), path.join(copy, 'node_modules'));
    const copied = (await import(path.join(copy, 'src/host/views.ts'))) as {
      createRender: typeof createRender;
    };
    for (const file of readdirSync(path.join(copy, 'views'), { recursive: true })) {
      if (String(file).endsWith('.ejs')) {
        writeFileSync(path.join(copy, 'views', String(file)), '<%= page.ofALaterVersion.x %>');
      }
    }
    const render = copied.createRender({
      formTokens: { formToken: () => '' },
      signedInOf: async () => undefined,
    });
    draw = (ctx) => render(ctx, 'signed-out', samples['signed-out']('text', 1));
    const response = await fetch(origin);
    expect(response.status, await response.text()).to.equal(200);
  });

  it('views escape any text, with and without list items and optional values', async () => {
    for (const name of Object.keys(samples) as ViewName[]) {
      for (const count of [0, 1, 2, 51]) {
        const who = count > 0 ? HOSTILE : undefined;
        expectWellFormed(await page(name, samples[name](HOSTILE, count), who), name);
      }
    }
  });

  it('every view can be rendered in every language', async () => {
    // In English the test above has rendered each, with other numbers of items, too.
    for (const language of languages().filter((one) => one !== 'en')) {
      for (const name of Object.keys(samples) as ViewName[]) {
        const html = await page(name, samples[name]('text', 2), 'Ada', language);
        expectWellFormed(html, name, language);
      }
    }
  });

  it('all English text in views comes from views/texts', async () => {
    await pseudoLanguage(async () => {
      const english: string[] = [];
      for (const name of Object.keys(samples) as ViewName[]) {
        const found = [1, 2].map(async (count) => wordsIn(await page(name, samples[name]('7', count), '7', PSEUDO)));
        if ((await Promise.all(found)).flat().length > 0) english.push(name);
      }
      expect(english).to.deep.equal([]);
    });
  });

  it('the consent page shows Approve and Deny with equal weight', async () => {
    const html = await page('consent', samples.consent('Parcel Pilot', 1));
    const buttons = html.match(/<button[^>]*name="decision"[^>]*>/g) ?? [];
    const alike = buttons.map((button) => button.replace(/ value="[^"]*"/, ''));
    expect(buttons.join()).to.include('value="switch-account"');
    expect(buttons.slice(1).join()).to.match(/value="approve".*value="deny"/);
    expect(alike[1]).to.equal(alike[2]);
  });

  it('a problem on the sign-in page is an alert that describes the field in focus', async () => {
    const html = await page('sign-in', samples['sign-in']('ada@demo.test', 1));
    expect(html).to.match(/id="problem" role="alert"/);
    expect(html).to.match(/name="password"[^>]*aria-describedby="problem[ "][^>]*autofocus/);
  });

  it('the sign-in page focuses the first empty field, unless the buttons of providers come first', async () => {
    const [first] = samples['sign-in']('platform', 1).providers;
    const focused = async (email: string, providers: ViewData['sign-in']['providers']) => {
      const sample = samples['sign-in'](email, 0);
      const html = await page('sign-in', { ...sample, email, providers, passwords: true });
      return (html.match(/<input[^>]*autofocus[^>]*>/g) ?? []).map((input) => {
        return /name="(\w+)"/.exec(input)?.[1];
      });
    };
    expect(await focused('', [])).to.deep.equal(['email']);
    expect(await focused('ada@demo.test', [])).to.deep.equal(['password']);
    expect(await focused('', first ? [first] : [])).to.deep.equal([]);
  });

  it('the fields for email address and password are marked for password managers', async () => {
    const html = await page('sign-in', { ...samples['sign-in']('', 0), passwords: true });
    expect(html).to.match(/name="email"[^>]*autocomplete="username"/);
    expect(html).to.match(/name="password"[^>]*autocomplete="current-password"/);
    expect(html).not.to.match(/maxlength|placeholder/);
  });

  it('each documented error has a page and an entry in the index', async () => {
    const lifetimes = {
      authorizationCodeSeconds: 600,
      accessTokenSeconds: 3_600,
      refreshTokenSeconds: 86_400,
      retryWindowSeconds: 60,
    };
    const errors = documentedErrors.map((code) => {
      const reference = errorReference(code, lifetimes);
      if (!reference) throw new Error(`no page for ${code}`);
      const { title, meaning, causes, answers, ...others } = reference;
      expect(answers, code).to.not.be.empty;
      expect(others, code).to.deep.equal({ code });
      expect(causes, code).to.not.be.empty;
      const texts = causes.map(({ cause, remedy, ...rest }) => {
        expect(rest, code).to.deep.equal({});
        return [cause, remedy];
      });
      // The text contains no HTML, and each lifetime was inserted: a misspelled name of one would print NaN.
      for (const text of [title, meaning, ...texts.flat()]) {
        expect(inEnglish(text), code)
          .to.match(/^[^{}]{10,}$/)
          .and.not.match(/NaN/);
      }
      return reference;
    });
    const index = await page('error-reference-index', { errors });
    for (const reference of errors) {
      const { code } = reference;
      expectWellFormed(await page('error-reference', reference), code);
      expect(index).to.include(`href="/errors/${code}"`);
    }
  });

  it('the template engine never takes its own options from page data or ctx.state', async () => {
    const options = { client: true, delimiter: '$', cache: false, escapeFunction: 'throw 1' };
    draw = (ctx) => {
      Object.assign(ctx.state, options, { settings: { 'view options': options } });
      return render(ctx, 'signed-out', { providers: ['<b>'], ...options });
    };
    expect(await (await fetch(origin)).text()).to.include('<bdi>&lt;b&gt;</bdi>');
  });
});

/** Renders for a signed-out visitor, or for a user of this name. */
function renderFor(name?: string, language = 'en'): Render {
  const id = 'acc_0123456789abcdef';
  const visitor = name !== undefined && {
    account: {
      id,
      email: name,
      name,
      createdAt: new Date(),
      isSuspended: false,
      hasPassword: true,
      sessionGeneration: 1,
      unwantedMail: [],
    },
    session: {
      accountId: id,
      signedInAt: 0,
      proofs: [],
      uid: 'uid',
      cookieHash: 'hash',
      generation: 1,
    },
    standing: { is: 'free' as const },
  };
  const formTokens = { formToken: () => 'token' };
  return createRender({
    formTokens,
    signedInOf: async () => visitor || undefined,
    languageOf: () => language,
  });
}

const render = renderFor();

/** Returns the words of a page in the pseudo-language that do not come from its texts. */
function wordsIn(html: string): string[] {
  const shown = html
    .replace(/<(script|code|pre|samp|kbd|time)\b[\s\S]*?<\/\1>/g, ' ')
    // Language names, and the name of the service.
    .replace(/<button[^>]*\slang="[\s\S]*?<\/button>|Gatehouse|UTC/g, ' ');
  const attributes = [...shown.matchAll(/\s(?:aria-label|title|alt|placeholder)="([^"]*)"/g)];
  const texts = [...attributes.map(([, value = '']) => value), shown.replace(/<[^>]*>/g, ' ')];
  const words = texts.join(' ').replace(/&#?\w+;/g, ' ');
  return words.match(/[A-Za-z]{2,}/g) ?? [];
}

/** Asserts the frame of every page, a single heading, and nothing that the content policy forbids. */
function expectWellFormed(html: string, name: string, language = 'en'): void {
  expect(html, name).to.match(new RegExp(`^<!doctype html>\\s*<html lang="${language}">`));
  expect(html, `${name} prints a message with <%= %>`).not.to.include('[object Object]');
  expect(html.match(/<title>[^<]+ · Gatehouse<\/title>/g), name).to.have.length(1);
  expect(html.match(/<h1[ >]/g), name).to.have.length(1);
  for (const landmark of ['header', 'main', 'footer']) {
    expect(html.match(new RegExp(`<${landmark}[ >]`, 'g')), `${name} ${landmark}`).to.have.length(1);
  }
  const withoutValues = html.replace(/"[^"]*"/g, '""');
  expect(withoutValues, name).not.to.match(/<[a-z][^>]*\s(?:style|on[a-z]+)\s*=/i);
  expect(html.match(/<script/g), name).to.have.length(1);
  expect(html).to.include(`<script src="${assetUrls.script}" defer></script>`);
  expect(html).not.to.match(/<(?:img|style|iframe|base)[ >]/);
  expect(html, `${name} begins details with their summary`).not.to.match(/<details[^>]*>\s*<(?!summary)/);
  // Leave out links of a client, which open other sites in a new tab without opener and referrer.
  const own = html.replace(/<a href="https:[^"]*" target="_blank" rel="noopener noreferrer">/g, '');
  expect(own, name).not.to.match(/(?:src|href)="(?:https?:)?\/\//);
  for (const form of html.match(/<form[\s\S]*?<\/form>/g) ?? []) {
    // A search changes nothing, so it needs no form token in its address.
    if (form.includes('method="get"')) expect(form).to.not.include('form_token');
    else expect(form).to.include('name="form_token"').and.include('method="post"');
  }
  const ids = html.match(/ id="[^"]*"/g) ?? [];
  expect(new Set(ids).size, name).to.equal(ids.length);
}
