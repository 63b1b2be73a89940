/** Every view, drawn over a real socket with ordinary, empty and hostile data. */
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import Koa from 'koa';
import { assetUrls, serveAsset } from '../../src/host/assets.ts';
import { render, viewMiddleware } from '../../src/host/views.ts';
import { errorReference, errorReferences } from '../../src/pages/error-reference.ts';
import type { ReachedOrganization, ViewData, ViewName } from '../../src/pages/view-data.ts';

const viewsDirectory = new URL('../../views/', import.meta.url);

type Samples = { readonly [Name in ViewName]: (text: string, many: number) => ViewData[Name] };

/** One page of each view, with `text` wherever a person or a client chose the words. */
const samples: Samples = {
  'sign-in': (text, many) => ({
    title: 'Sign in',
    action: '/login',
    formToken: text,
    email: text,
    ...(many > 0 && { problem: text, client: { name: text }, cancel: true }),
  }),
  consent: (text, many) => ({
    action: `/interaction/${encodeURIComponent(text)}`,
    formToken: text,
    client: { name: text, providedBy: text, providedByOperator: many === 0 },
    account: { name: text, email: text },
    redirect: { host: many === 0 ? '' : text, uri: `https://${text}/` },
    organizations: organizations(text, many),
    isRepeat: many > 0,
  }),
  'confirm-password': (text, many) => ({
    action: '/profile',
    formToken: text,
    email: text,
    carried: Array.from({ length: many }, () => ({ name: text, value: text })),
    ...(many > 0 && { problem: text }),
  }),
  profile: (text, many) => ({
    account: { name: text, email: text },
    formToken: text,
    organizations: organizations(text, many),
    keepAliveUrl: '/oauth/token/refresh',
  }),
  'sign-out': (text) => ({ formToken: text, account: { name: text, email: text } }),
  'signed-out': (text) => ({ title: text }),
  error: (text, many) => ({
    status: 400,
    heading: text,
    explanation: text,
    advice: text,
    links: Array.from({ length: many }, () => ({ href: '/login', label: text })),
    requestId: text,
  }),
  'error-reference': (text, many) => ({
    code: text,
    title: text,
    meaning: text,
    causes: Array.from({ length: many }, () => ({ cause: text, remedy: text })),
  }),
  'error-reference-index': (text, many) => ({
    title: text,
    errors: Array.from({ length: many }, () => ({ code: text, title: text })),
  }),
};

const texts = {
  ordinary: 'Parcel Pilot',
  'that looks like markup': `<img src=x onerror=alert(1)>"'><script>alert(1)</script>`,
  'that looks like a template': '<%= process.env %><%- 1 %>',
  'of 200 characters without a space': 'x'.repeat(200),
  'written from right to left': 'مستودع الميناء',
};

const viewNames = Object.keys(samples) as ViewName[];

describe('views', () => {
  let server: Server;
  let origin: string;
  let draw: (ctx: Koa.Context) => Promise<void>;

  before(async () => {
    const app = new Koa();
    app.silent = true;
    app.use(viewMiddleware());
    app.use(async (ctx) => (ctx.path.startsWith('/assets/') ? serveAsset(ctx) : draw(ctx)));
    server = app.listen(0, '127.0.0.1');
    await once(server, 'listening');
    origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });

  after(() => server.close());

  async function page<Name extends ViewName>(name: Name, data: ViewData[Name]): Promise<string> {
    draw = (ctx) => render(ctx, name, data);
    const response = await fetch(origin);
    const html = await response.text();
    expect(response.status, html).to.equal(200);
    expect(response.headers.get('content-type')).to.equal('text/html; charset=utf-8');
    return html;
  }

  it('each file in views/ has its type, and each type its file', () => {
    const files = readdirSync(viewsDirectory).filter((name) => name.endsWith('.ejs'));
    expect(files.sort()).to.deep.equal(viewNames.map((name) => `${name}.ejs`).sort());
  });

  for (const name of viewNames) {
    for (const [kind, text] of Object.entries(texts)) {
      it(`${name} shows text ${kind} as text, with and without lists`, async () => {
        for (const many of [0, 1, 50]) {
          expectWellFormed(await page(name, samples[name](text, many)));
        }
      });
    }
  }

  it('text is escaped in elements and in attributes', async () => {
    const html = await page('sign-in', samples['sign-in']('<b a="1" b=\'2\'>&', 1));
    expect(html).to.include('&lt;b a=&#34;1&#34; b=&#39;2&#39;&gt;&amp;').and.not.include('<b ');
  });

  it('the consent page offers approve and deny alike', async () => {
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
    expect(html).to.match(/name="password"[^>]*aria-describedby="problem"[^>]*autofocus/);
  });

  it('the name and password of a person are marked for password managers', async () => {
    const html = await page('sign-in', samples['sign-in']('', 0));
    expect(html).to.match(/name="email"[^>]*autocomplete="username"/);
    expect(html).to.match(/name="password"[^>]*autocomplete="current-password"/);
    expect(html).not.to.match(/maxlength|placeholder/);
  });

  it('each documented error has its page and its place in the index', async () => {
    const index = await page('error-reference-index', { title: 'E', errors: errorReferences() });
    for (const { code } of errorReferences()) {
      expectWellFormed(await page('error-reference', errorReference(code)));
      expect(index).to.include(`href="/errors/${code}"`);
    }
  });

  it('pages drawn at the same time do not mix', async () => {
    draw = (ctx) => render(ctx, 'signed-out', { title: `page of ${ctx.query.of}` });
    const answers = Array.from({ length: 20 }, async (_, of) => {
      const html = await (await fetch(`${origin}/?of=${of}`)).text();
      return html.includes(`<h1>page of ${of}</h1>`);
    });
    expect(await Promise.all(answers)).to.deep.equal(Array(20).fill(true));
  });

  it('neither page data nor ctx.state can be taken for options of the template engine', async () => {
    const options = { client: true, delimiter: '$', cache: false, escapeFunction: 'throw 1' };
    draw = (ctx) => {
      Object.assign(ctx.state, options, { settings: { 'view options': options } });
      return render(ctx, 'signed-out', { title: '<b>', ...options });
    };
    expect(await (await fetch(origin)).text()).to.include('<h1>&lt;b&gt;</h1>');
  });

  it('a context that did not pass the middleware can be drawn on', async () => {
    const app = new Koa();
    app.use((ctx) => render(ctx, 'signed-out', { title: 'Elsewhere' }));
    const other = app.listen(0, '127.0.0.1');
    await once(other, 'listening');
    const { port } = other.address() as AddressInfo;
    const html = await (await fetch(`http://127.0.0.1:${port}`)).text();
    other.close();
    expect(html).to.include('<h1>Elsewhere</h1>');
  });

  it('templates print with <%= and use <%- for include only', () => {
    for (const { name, source } of templates()) {
      const raw = source.match(/<%-(?!\s*include\('[\w/-]+')[^%]*/g);
      expect(raw, name).to.equal(null);
      expect(source, name).not.to.match(
        /\sstyle\s*=|\son[a-z]+\s*=|<style|<script(?![^>]*\ssrc=)/i,
      );
    }
  });

  it('assets are found under the hash of their content, kept for good and asked for once', async () => {
    for (const url of Object.values(assetUrls)) {
      const response = await fetch(origin + url);
      expect(response.status, url).to.equal(200);
      expect(response.headers.get('cache-control')).to.equal('public, max-age=31536000, immutable');
      expect(response.headers.get('content-type')).to.match(/^(text\/(css|javascript)|image\/svg)/);
      const etag = response.headers.get('etag') ?? '';
      // Without its own Cache-Control, `fetch` adds `no-cache` to a conditional request.
      const headers = { 'If-None-Match': etag, 'Cache-Control': 'max-age=0' };
      const again = await fetch(origin + url, { headers });
      expect(again.status, url).to.equal(304);
    }
  });

  it('anything else under /assets is not found', async () => {
    const others = ['gatehouse.css', '..%2fsign-in.ejs', '__proto__', ''];
    for (const other of others) {
      expect((await fetch(`${origin}/assets/${other}`)).status, other).to.equal(404);
    }
  });
});

function organizations(text: string, many: number): ReachedOrganization[] {
  const warehouses = Array.from({ length: many }, () => ({ name: text, rights: ['read', text] }));
  return Array.from({ length: many }, (_, index) => ({
    name: text,
    role: 'viewer',
    warehouses: index % 2 === 0 ? warehouses : [],
  }));
}

/** What holds for every page: its frame, its one heading, and nothing the content policy refuses. */
function expectWellFormed(html: string): void {
  expect(html).to.match(/^<!doctype html>\s*<html lang="en">/);
  expect(html.match(/<title>[^<]+ · Gatehouse<\/title>/g)).to.have.length(1);
  expect(html.match(/<h1[ >]/g)).to.have.length(1);
  for (const landmark of ['header', 'main', 'footer']) {
    expect(html.match(new RegExp(`<${landmark}[ >]`, 'g')), landmark).to.have.length(1);
  }
  const withoutValues = html.replace(/"[^"]*"/g, '""');
  expect(withoutValues).not.to.match(/<[a-z][^>]*\s(?:style|on[a-z]+)\s*=/i);
  expect(html.match(/<script/g)).to.have.length(1);
  expect(html).to.include(`<script src="${assetUrls.script}" defer></script>`);
  expect(html).not.to.match(/<(?:img|style|iframe|base)[ >]/);
  expect(html).not.to.match(/(?:src|href)="(?:https?:)?\/\//);
  for (const form of html.match(/<form[\s\S]*?<\/form>/g) ?? []) {
    expect(form).to.include('name="form_token"').and.include('method="post"');
  }
  const ids = html.match(/ id="[^"]*"/g) ?? [];
  expect(new Set(ids).size).to.equal(ids.length);
}

function templates(): { name: string; source: string }[] {
  return readdirSync(viewsDirectory, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ejs'))
    .map((name) => ({ name, source: readFileSync(new URL(name, viewsDirectory), 'utf8') }));
}
