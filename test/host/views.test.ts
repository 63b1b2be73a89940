/** Every view, drawn over a real socket with ordinary, empty and hostile data. */
import { once } from 'node:events';
import { cpSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import Koa from 'koa';
import { assetUrls } from '../../src/host/assets.ts';
import { createRender } from '../../src/host/views.ts';
import { documentedErrors, errorReference } from '../../src/pages/error-reference.ts';
import type { ListView } from '../../src/pages/lists.ts';
import type { ClientFormView } from '../../src/pages/oauth-clients/view.ts';
import type { ReachedOrganization, Render, ViewData, ViewName } from '../../src/pages/view-data.ts';
import { momentOf } from '../../src/pages/words/moment.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const viewsDirectory = new URL('../../views/', import.meta.url);

type Samples = { readonly [Name in ViewName]: (text: string, many: number) => ViewData[Name] };

/** One page of each view, with `text` wherever a person or a client chose the words. */
const samples: Samples = {
  'sign-in': (text, many) => ({
    title: 'Sign in',
    action: '/login',
    ways: list(many, (index) => ({ id: `way-${index}`, label: text })),
    wayField: 'sign_in_with',
    passwords: many < 2,
    hasHints: many > 0,
    passkeyOptionsUrl: some('/passkey-options/sign-in', many),
    email: text,
    ...(many > 0 && { problem: text, isTypedWrong: true, client: { name: text }, cancel: true }),
    ...(many > 0 && { notice: text, forgotPasswordUrl: '/forgot-password' }),
  }),
  consent: (text, many) => ({
    action: `/interaction/${encodeURIComponent(text)}`,
    client: {
      ...{ name: text, providedBy: text, providedByOperator: many === 0, isVerified: many > 0 },
      links: list(many, () => ({ label: text, host: text, url: 'https://app.example/' })),
    },
    account: { name: text, email: text },
    redirect: { host: many === 0 ? '' : text, uri: `https://${text}/` },
    organizations: organizations(text, many),
    bars: bars(text, many),
    isRepeat: many > 0,
    since: list(many - 1, () => text),
    more: many,
    shown: 'sealed',
    changes: Array.from({ length: many }, () => 'It was called “Old”.'),
  }),
  'handed-over': (text) => ({ name: text, url: `com.example.app:/cb?state=${text}` }),
  'confirm-password': (text, many) => ({
    action: '/profile',
    email: text,
    hasPassword: many < 2,
    ways: list(many, (index) => ({ id: `way-${index}`, label: text })),
    wayField: 'sign_in_with',
    passkeyOptionsUrl: some('/passkey-options/confirm', many),
    isTypedWrong: many > 0,
    carried: Array.from({ length: many }, () => ({ name: text, value: text })),
    ...(many > 0 && { problem: text }),
  }),
  profile: (text, many) => ({
    account: { name: text, email: text },
    recovery: some({ ready: MOMENT, stopUrl: '/profile/security/stop-recovery' }, many),
    organizations: organizations(text, many),
    counts: list(many, (index) => ({ href: '/profile/activity', count: index, label: text })),
  }),
  organizations: (text, many) => ({
    notice: some(text, many),
    organizations: list(many, (index) => ({
      ...{ name: text, role: text, warehouses: text },
      url: some('/profile/organizations/org_', index),
    })),
    list: listView(text, many),
  }),
  organization: (text, many) => ({
    ...{ name: text, role: text, notice: some(text, many), problem: some(text, many) },
    wholeUrl: some('/profile/organizations/org_', many),
    parts: list(4, (index) => ({
      ...{ id: `part-${index}`, heading: `Part ${index}`, note: text, empty: text, total: many },
      rows: list(many, (row) => ({
        ...{ name: text, detail: text, role: some(text, row) },
        marks: list(row, () => ({ text, isWarning: true })),
        facts: [
          { label: text, text },
          { label: text, moment: MOMENT },
        ],
        action: some({ url: '/profile', label: text, isEnd: true }, row),
      })),
      allUrl: some('/profile', index),
      list: index === 0 ? listView(text, many) : undefined,
    })),
  }),
  'oauth-clients': (text, many) => ({
    notice: some(text, many),
    clients: list(many, (index) => ({
      ...{ url: '/profile/oauth-clients/gate_ci_', id: text, name: text },
      ...{ isSuspended: index % 2 === 0, created: MOMENT, connectedPeople: index },
      ...{ lastUsed: some(MOMENT, index), problems: index },
      problemsUrl: '/profile/oauth-clients/gate_ci_/problems',
    })),
    limit: many,
    list: listView(text, many),
    hasRoom: many === 1,
  }),
  'oauth-client-new': (text, many) => ({
    notice: some(text, many),
    form: clientForm(text, many),
  }),
  'oauth-client': (text, many) => ({
    ...clientPage(text, many),
    client: {
      ...{ id: text, created: MOMENT, connectedPeople: many },
      lastUsed: some(MOMENT, many),
    },
    connectUrl: '/profile/oauth-clients/gate_ci_/connect',
    problems: some(
      {
        url: '/profile/oauth-clients/gate_ci_/problems',
        latest: { error: text, cause: text, last: MOMENT },
        others: many - 1,
      },
      many,
    ),
    requests: list(many, (index) => ({
      ...{ at: MOMENT, time: '04:23:17', step: text, outcome: text, requestId: text },
      ...{ isRefused: index % 2 === 0, cause: index > 0 ? text : '' },
    })),
    requestsUrl: '/profile/oauth-clients/gate_ci_/requests',
  }),
  'oauth-client-connect': (text, many) => ({
    ...clientPage(text, many),
    ...clientConnection(text, many),
    ...{ id: text, test: some(clientTestForm(text, many), many) },
  }),
  'oauth-client-created': (text, many) => ({
    ...clientConnection(text, many),
    ...{ heading: text, advice: text, name: text, id: text, secret: text },
    test: some(clientTestForm(text, many), many),
    nextUrl: '/profile/oauth-clients/gate_ci_?from=secret',
  }),
  'oauth-client-settings': (text, many) => ({
    ...clientPage(text, many),
    form: clientForm(text, many),
    deleteUrl: '/profile/oauth-clients/gate_ci_/delete',
  }),
  'oauth-client-secrets': (text, many) => ({
    ...clientPage(text, many),
    problem: some(text, many),
    live: list(many, (index) => ({
      ...{ id: text, lastFour: text, created: MOMENT, lastUsed: some(MOMENT, index) },
      isSafeToRemove: index > 0,
    })),
    rotateUrl: some('/profile/oauth-clients/gate_ci_/rotate-secret', 1 - many),
    removeUrl: some('/profile/oauth-clients/gate_ci_/remove-secret', many),
  }),
  'oauth-client-problems': (text, many) => ({
    ...clientPage(text, many),
    registerUrl: '/profile/oauth-clients/gate_ci_/redirect-uris',
    groups: list(many, (index) => ({
      ...{ count: index, first: MOMENT, last: MOMENT },
      ...{ step: text, error: text, cause: text, requestId: text },
      errorUrl: some('/errors/invalid_client', index),
      ...{ authMethod: some(text, index), scope: some(text, index), toRegister: some(text, index) },
      redirectUri: some(
        {
          sent: list(many, (part) => ({ text, isMarked: part % 2 === 0 })),
          nearest: some([{ text: '', isMarked: true }], index - 1),
          differences: list(many, () => text),
        },
        index,
      ),
    })),
  }),
  'oauth-client-test': (text, many) => ({
    client: { name: text, url: '/profile/oauth-clients/gate_ci_' },
    form: clientTestForm(text, many),
    result: some(
      {
        ...{ isPassed: many === 1, isKept: many > 1, summary: text, apiAnswer: some(text, many) },
        steps: list(many, (index) => ({
          ...{ title: text, request: text, answer: text, verdict: text },
          isExpected: index % 2 === 0,
        })),
      },
      many,
    ),
    tokens: some({ accessToken: text, refreshToken: text, goodFor: text }, many),
    isGone: many === 0,
    organizations: organizations(text, many),
  }),
  'oauth-client-links': (text, many) => ({
    client: { name: text, url: '/profile/oauth-clients/gate_ci_' },
    ...{ notice: some(text, many), isVerified: many > 0, action: '/profile' },
    problems: list(many, () => ({ field: 'field-0', message: text })),
    fields: list(many, (index) => ({
      ...{ name: `field-${index}`, label: text, hint: text, value: text },
      problem: some(text, index),
    })),
  }),
  'oauth-client-delete': (text, many) => ({
    ...{ name: text, connectedPeople: many, typedName: text },
    action: '/profile/oauth-clients/gate_ci_/delete',
    notice: some(text, many),
    problem: some(text, many),
    cancel: '/profile/oauth-clients/gate_ci_',
  }),
  connections: (text, many) => ({
    notice: some(text, many),
    connections: list(many, () => connection(text, many)),
    list: listView(text, many),
    reach: text,
    disconnectAllUrl: '/profile/connections/disconnect-all',
  }),
  connection: (text, many) => ({
    ...connection(text, many),
    approved: some(MOMENT, many),
    organizations: organizations(text, many),
  }),
  'api-keys': (text, many) => ({
    notice: some(text, many),
    list: listView(text, many),
    keys: list(many, (index) => ({
      name: text,
      masked: text,
      created: MOMENT,
      expires: some(MOMENT, many),
      isExpired: index % 2 === 0,
      lastUsed: some(MOMENT, many),
      revokeUrl: '/profile/api-keys/key_/revoke',
    })),
    limit: many,
    form:
      many === 50
        ? undefined
        : {
            action: '/profile/api-keys',
            creationKey: text,
            name: text,
            expiries: ['30', '90', 'none'].map((value) => ({
              ...{ value, label: text, isChosen: value === '90' },
            })),
            problems: problems(text, many),
            nameProblem: some(text, many),
            expiryProblem: some(text, many),
          },
  }),
  'secret-shown': (text, many) => ({
    section: 'api-keys',
    heading: text,
    ...(many > 0 && {
      secret: { name: text, label: text, value: text, advice: text },
    }),
    remedy: text,
    next: { href: '/profile/api-keys', label: text },
  }),
  activity: (text, many) => ({
    ...{ tools: listView(text, many), isPart: many > 1 },
    entries: list(many, (index) => ({
      at: MOMENT,
      what: text,
      about: some(text, many),
      note: some(text, many),
      isWarning: index % 2 === 0,
      by: text,
      address: some(text, many),
    })),
    olderUrl: some('/profile/activity?before=1', many),
    newestUrl: some('/profile/activity', many),
  }),
  security: (text, many) => ({
    notice: some(text, many),
    recovery: some({ ready: MOMENT, stopUrl: '/profile/security/stop-recovery' }, many),
    email: text,
    ways: {
      hasPassword: many < 2,
      held: list(many, (index) => ({
        ...{ id: text, label: text, added: MOMENT, lastUsed: some(MOMENT, index) },
        ...{ isUnused: index === 1, removeUrl: some('/profile/security/ways/remove', 1 - index) },
      })),
      linkable: list(many, () => ({ id: 'way', label: text })),
      linkUrl: '/profile/security/ways',
      resetWith: list(many, () => ({ id: 'way', label: text })),
      resetUrl: '/profile/security/password/reset',
    },
    passkeys: some(
      {
        passkeys: list(many, (index) => ({
          ...{ name: text, isSynced: index > 0, created: MOMENT },
          lastUsed: some(MOMENT, index),
          renameUrl: '/profile/security/passkeys/pk_',
          removeUrl: some('/profile/security/passkeys/pk_/remove', many - 1),
        })),
        addUrl: many > 1 ? undefined : '/profile/security/passkeys/new',
      },
      many,
    ),
    signedIn: MOMENT,
    mail: some(
      list(many, () => ({ value: 'new_device', label: text, isWanted: true })),
      many,
    ),
    mailUrl: '/profile/security/mail',
    sessions: list(many, (index) => ({
      ...{ browser: text, address: text, signedIn: MOMENT, lastSeen: MOMENT },
      ...{ isThis: index === 0, signOutUrl: '/profile/security/sessions/a/sign-out' },
    })),
    changePasswordUrl: '/profile/security/password',
    signOutEverywhereUrl: '/profile/security/sign-out-everywhere',
    connections: some(text, many),
    isEndingConnections: many > 1,
    problems: problems(text, many),
    currentProblem: some(text, many),
    newProblem: some(text, many),
  }),
  passkey: (text, many) => ({
    ...{ heading: text, name: text, action: '/profile/security/passkeys/new' },
    ...(many > 0 && { notice: text, problem: text, nameProblem: text }),
    ...(many > 0 && { optionsUrl: '/passkey-options/add' }),
    ...{ button: text, cancel: '/profile/security' },
  }),
  confirm: (text, many) => ({
    section: 'connections',
    question: text,
    subject: text,
    consequences: list(many, (index) => (index > 0 ? [text, MOMENT, text] : text)),
    ...(many > 0 && { warning: [text, MOMENT], fields: [{ name: text, value: text }] }),
    action: '/profile/connections/disconnect-all',
    button: text,
    cancel: '/profile/connections',
  }),
  password: (text, many) => ({
    heading: text,
    email: text,
    action: '/password',
    token: text,
    setsPassword: many < 2,
    elsewhere: some(text, many),
    choices: list(many, (index) => ({
      ...{ name: 'remove_way', value: text, verb: 'take away', what: text },
      ...{ since: some(MOMENT, index), isChosen: index > 0 },
    })),
    isMoreDemanded: many > 0,
    problem: some(text, many),
  }),
  'recovery-wait': (text, many) => ({
    title: text,
    email: text,
    ways: list(many, () => text),
    wait: text,
    started: some({ at: MOMENT, ready: MOMENT }, many - 1),
    startUrl: some('/password/recovery', many),
    token: text,
  }),
  'stop-recovery': (text, many) => ({
    title: text,
    state: (['asked', 'stopped', 'nothing to stop'] as const)[many % 3] ?? 'asked',
    action: '/stop-recovery',
    token: text,
  }),
  'first-sign-in': (text, many) => ({
    label: text,
    action: '/profile/security/first-sign-in',
    choices: list(many, (index) => ({
      ...{ name: 'remove_way', value: text, verb: 'remove', what: text },
      ...{ since: some(MOMENT, index), isChosen: index > 0 },
    })),
    fields: [{ name: 'way', value: text }],
    onward: '/profile',
    problem: some(text, many),
  }),
  'stronger-sign-in': (text, many) => ({
    notice: some(text, many),
    until: MOMENT,
    isOver: many > 0,
    isFromProvider: many > 0,
    held: list(many - 1, () => text),
    addPasskeyUrl: some('/profile/security/passkeys/new', many),
    linkable: list(many, () => ({ id: 'way', label: text })),
    linkUrl: '/profile/security/ways',
  }),
  'password-link-over': (text, many) => ({
    title: text,
    signInUrl: '/login',
    forgotPasswordUrl: some('/forgot-password', many),
  }),
  'forgot-password': (text, many) => ({
    action: '/forgot-password',
    signInUrl: '/login',
    email: text,
    problem: some(text, many),
    sent: some(text, many - 1),
    elsewhere: some(text, many),
  }),
  'sign-out': (text) => ({ account: { name: text, email: text } }),
  'signed-out': (text) => ({ title: text }),
  error: (text, many) => ({
    status: 400,
    heading: text,
    explanation: text,
    advice: text,
    typed: list(many, () => ({ label: text, value: text })),
    ...(many > 0 && {
      nearMiss: {
        ...{ sent: [{ text, isMarked: true }], nearest: [{ text, isMarked: false }] },
        clientUrl: '/profile/oauth-clients/gate_ci_',
      },
    }),
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
  ): Promise<string> {
    draw = (ctx) => renderFor(who)(ctx, name, data);
    const response = await fetch(origin);
    const html = await response.text();
    expect(response.status, html).to.equal(200);
    expect(response.headers.get('content-type')).to.equal('text/html; charset=utf-8');
    return html;
  }

  it('each file in views/ has its type, and each type its file', () => {
    const files = readdirSync(viewsDirectory).filter((name) => name.endsWith('.ejs'));
    const next = 'write views/<name>.ejs, and give it a sample above';
    expect(files.sort(), next).to.deep.equal(viewNames.map((name) => `${name}.ejs`).sort());
  });

  // An upgrade in place replaces them under a process that still runs.
  it('are those of the start, with what they include, whatever the files hold later', async () => {
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
      visitorOf: async () => undefined,
    });
    draw = (ctx) => render(ctx, 'signed-out', samples['signed-out']('text', 1));
    const response = await fetch(origin);
    expect(response.status, await response.text()).to.equal(200);
  });

  for (const name of viewNames) {
    for (const [kind, text] of Object.entries(texts)) {
      it(`${name} shows text ${kind} as text, with and without lists`, async () => {
        for (const many of [0, 1, 50]) {
          expectWellFormed(await page(name, samples[name](text, many), some(text, many)));
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
    expect(html).to.match(/name="password"[^>]*aria-describedby="problem[ "][^>]*autofocus/);
  });

  it('the name and password of a person are marked for password managers', async () => {
    const html = await page('sign-in', samples['sign-in']('', 0));
    expect(html).to.match(/name="email"[^>]*autocomplete="username"/);
    expect(html).to.match(/name="password"[^>]*autocomplete="current-password"/);
    expect(html).not.to.match(/maxlength|placeholder/);
  });

  it('each documented error has its page and its place in the index', async () => {
    const lifetimes = {
      authorizationCodeSeconds: 600,
      accessTokenSeconds: 3_600,
      refreshTokenSeconds: 86_400,
      retryWindowSeconds: 60,
    };
    const errors = documentedErrors.map((code) => {
      const reference = errorReference(code, lifetimes);
      if (!reference) throw new Error(`no page for ${code}`);
      const { title, meaning, causes, ...others } = reference;
      expect(others, code).to.deep.equal({ code });
      const told = causes.map(({ cause, remedy, ...rest }) => {
        expect(rest, code).to.deep.equal({});
        return [cause, remedy];
      });
      // Plain text, with each lifetime in place: a misspelled one would be NaN.
      for (const text of [title, meaning, ...told.flat()]) {
        expect(text, code)
          .to.be.a('string')
          .that.match(/^[^{}]{10,}$/)
          .and.not.match(/NaN/);
      }
      return reference;
    });
    const index = await page('error-reference-index', { title: 'E', errors });
    for (const reference of errors) {
      const { code } = reference;
      expectWellFormed(await page('error-reference', reference));
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

  it('what ends something looks like it, and nothing else does', () => {
    const button = /<(?:a|button) class="button([^"]*)"((?:"[^"]*"|[^">])*)>(<%= [^%]* %>|[^<]*)/g;
    const dangerous = templates().flatMap(({ source }) =>
      [...source.matchAll(button)]
        .filter(([, style = '']) => style.includes(' danger'))
        .map(([, , , label]) => label),
    );
    expect(dangerous.sort()).to.deep.equal([
      ...['<%= page.button %>', 'Delete client', 'Delete client', 'Disconnect', 'Disconnect'],
      ...[
        'Disconnect all',
        'End what is ticked',
        'Remove',
        'Remove',
        'Remove',
        'Revoke',
        'Sign out',
        'Sign out everywhere else',
      ],
    ]);
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
});

const MOMENT = momentOf(new Date('2026-11-21T04:23:00Z'));

const list = <Item>(many: number, item: (index: number) => Item): Item[] =>
  Array.from({ length: many }, (_, index) => item(index));

const some = <Value>(value: Value, many: number): Value | undefined =>
  many > 0 ? value : undefined;

const problems = (text: string, many: number) => [
  ...list(Math.min(many, 2), () => ({ message: text })),
  ...list(Math.min(many, 2), () => ({ field: 'field', message: text })),
];

const clientForm = (text: string, many: number): ClientFormView => ({
  action: '/profile/oauth-clients/new',
  problems: problems(text, many),
  drawnFrom: some(text, many),
  name: text,
  nameProblem: some(text, many),
  rows: list(many, (index) => ({
    ...{ uri: text, problem: some(text, index), warnings: list(index, () => text) },
    isNew: index > 48,
  })),
  canAddRow: many === 1,
  button: text,
});

const clientTestForm = (text: string, many: number) => ({
  action: '/profile/oauth-clients/gate_ci_/test',
  needsSecret: many > 0,
  keptFor: text,
  problem: some(text, many),
  keepsTokens: many > 0,
});

const clientPage = (text: string, many: number) => ({
  head: {
    ...{ name: text, isSuspended: many > 0 },
    parts: list(many + 1, (index) => ({
      ...{ url: '/profile/oauth-clients/gate_ci_', label: index === 0 ? 'Overview' : text },
      ...{ isCurrent: index === many, count: index },
    })),
  },
  notice: some(text, many),
});

const clientConnection = (text: string, many: number) => ({
  endpoints: list(many, () => ({ label: text, url: text })),
  api: some({ url: text, query: text }, many),
  localAddress: some(text, many),
  environment: text,
  snippets: list(many, () => ({ name: text, code: text })),
  toRegister: some({ uri: text, action: '/profile/oauth-clients/gate_ci_/redirect-uris' }, many),
});

/** For nobody, or for somebody of this name. */
function renderFor(name?: string): Render {
  const id = 'acc_0123456789abcdef';
  const visitor = name !== undefined && {
    account: {
      ...{ id, email: name, name, createdAt: new Date() },
      ...{ isSuspended: false, hasPassword: true, isEmailTaken: false, sessionGeneration: 1 },
      ...{ endedSessions: [], unwantedMail: [] },
    },
    session: {
      accountId: id,
      signedInAt: 0,
      provedAt: 0,
      method: 'password' as const,
      uid: 'uid',
      generation: 1,
    },
  };
  const formTokens = { formToken: () => 'token' };
  return createRender({ formTokens, visitorOf: async () => visitor || undefined });
}

const render = renderFor();

const bars = (text: string, many: number) =>
  list(many, (index) => ({ organization: text, since: MOMENT, follows: index > 0 }));

const connection = (text: string, many: number) => ({
  url: '/profile/connections/gate_ci_',
  name: text,
  providedBy: text,
  isSuspended: many > 1,
  connected: MOMENT,
  lastUsed: some(MOMENT, many),
  changes: many === 0 ? undefined : many === 1 ? '' : text,
  bars: bars(text, many),
  disconnectUrl: '/profile/connections/gate_ci_/disconnect',
});

function listView(text: string, many: number): ListView {
  const choices = list(many, (index) => ({ value: text, label: text, isChosen: index === 0 }));
  return {
    ...{ action: '/profile', allUrl: '/profile', kept: [{ name: 'show', value: text }] },
    ...{ search: text, orders: choices, filters: choices, total: many, found: many - 1 },
    ...{ nextUrl: some('/profile', many), firstUrl: some('/profile', many), hasTools: many > 1 },
  };
}

function organizations(text: string, many: number): ReachedOrganization[] {
  const change = { kind: 'changed', words: text } as const;
  const warehouses = list(many, (index) => ({
    ...{ name: text, rights: ['read', text] },
    ...(index % 2 === 0 && { change }),
  }));
  return list(many, (index) => ({
    name: text,
    role: 'viewer',
    ...(index % 2 === 0 && { change }),
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
  // The links of a client lead elsewhere, in a page of their own that knows nothing of this one.
  const own = html.replace(/<a href="https:[^"]*" target="_blank" rel="noopener noreferrer">/g, '');
  expect(own).not.to.match(/(?:src|href)="(?:https?:)?\/\//);
  for (const form of html.match(/<form[\s\S]*?<\/form>/g) ?? []) {
    // A search changes nothing, and its address may be kept.
    if (form.includes('method="get"')) expect(form).to.not.include('form_token');
    else expect(form).to.include('name="form_token"').and.include('method="post"');
  }
  const ids = html.match(/ id="[^"]*"/g) ?? [];
  expect(new Set(ids).size).to.equal(ids.length);
}

function templates(): { name: string; source: string }[] {
  return (
    readdirSync(viewsDirectory, { recursive: true, encoding: 'utf8' })
      // What is printed there is no HTML: the test of the programs holds their rule.
      .filter((name) => name.endsWith('.ejs') && !name.startsWith('programs/'))
      .map((name) => ({ name, source: readFileSync(new URL(name, viewsDirectory), 'utf8') }))
  );
}
