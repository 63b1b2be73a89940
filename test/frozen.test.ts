/**
 * Names and formats that are stored, that nodes of two versions exchange, or that others use. They stand
 * in frozen.json, which `npm run frozen` writes. Compared with the previous release, a change of that file may only
 * add, and an older node ignores what it does not know: a new member must not restrict what an old one allows.
 */
import { createDecipheriv, createHmac, hkdfSync } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { crc32, gunzipSync } from 'node:zlib';
import { expect } from 'chai';
import { Redis } from 'ioredis';
import packageFile from '../package.json' with { type: 'json' };
import { ACTIONS, CAUSES } from '../src/accounts/activity/activity-words.ts';
import { sha256 } from '../src/base/random-id.ts';
import { knownSettings } from '../src/config/schema/known-settings.ts';
import { createProgram } from '../src/operator/program/program.ts';
import { checkSettings, keysOfEnvironment } from './config/configuration.ts';
import { commandsOf, idle } from './operator/commands.ts';
import { operatorFor, valueFrom } from './operator/run-operator.ts';
import { LIST, REDIRECT_URI } from './pages/client-owner.ts';
import { optionsFor } from './pages/passkeys/soft-passkey.ts';
import { fieldOf, type SignedInPerson, signedIn } from './pages/signed-in-person.ts';
import { granted, partnerTokens } from './provider/partner-tokens.ts';
import { GRACE, startWithUpstream, WITH_PLATFORM } from './sign-in-upstream/service.ts';
import { scrape } from './support/metrics.ts';
import { authorizationUrl, clientCredentials, exchangeCode, introspect, refresh } from './support/oauth.ts';
import type { Fields, Page, Person } from './support/person.ts';
import { previousRelease } from './support/previous-release.ts';
import { rawRequest } from './support/raw-request.ts';
import { describeOn, postgresServer, redisServer } from './support/requirements.ts';
import { apiKeyOf } from './support/seed.ts';
import { startsOn } from './support/service.ts';

const KEEP = 'Old and new nodes exchange this, and it is stored: keep it. If you only added, run `npm run frozen`';
type Frozen = Readonly<Record<string, readonly string[]>>;
const FILE = path.join(import.meta.dirname, 'frozen.json');
const FROZEN = JSON.parse(readFileSync(FILE, 'utf8')) as Frozen;
const isWriting = process.env.WRITE_FROZEN !== undefined;
const found: Record<string, readonly string[]> = {};

/** Compares with frozen.json, or remembers the value to write it there. */
function expectFrozen(what: string, value: readonly string[]): void {
  found[what] = [...new Set(value)].sort();
  if (!isWriting) expect(found[what], `${what}. ${KEEP}`).to.deep.equal(FROZEN[what]);
}
after('write what was found', () => {
  if (isWriting) writeFileSync(FILE, `${JSON.stringify(found, Object.keys(found).sort(), 2)}\n`);
});

const ROOT = path.join(import.meta.dirname, '..');
const textOf = (folder: string, ending: string): string =>
  readdirSync(path.join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith(ending))
    .map((name) => readFileSync(path.join(ROOT, folder, name), 'utf8'))
    .join('\n');
const sources = textOf('src', '.ts');
/** Returns the first group of each match in the source. */
const inSources = (pattern: RegExp, text = sources): string[] =>
  [...text.matchAll(pattern)].map(([, name = '']) => name.replace(/\$\{[^}]*\}/g, '…'));
/** Returns the string literals of a union type. */
const union = (name: string): string[] =>
  inSources(/'([^']+)'/g, new RegExp(`type ${name} =([^;]+);`).exec(sources)?.[1]);

/** For each kind, the names that the source uses. */
const NAMES: Readonly<Record<string, () => readonly string[]>> = {
  'purposes of seals': () => inSources(/createSeals\(\s*'([^']+)'/g),
  'other texts in a MAC or a hash': () => inSources(/\.update\(\s*[`']([^`']+)[`']/g),
  'names of cookies, and prefixes of values': () => [
    ...inSources(/(?:ownCookie|cookieName)\(\s*[\w.]+,\s*'(\w+)'/g),
    ...inSources(/'(?:__\w+-)?gate_([a-z_]+)'/g),
  ],
  limits: () => inSources(/(?:create|hourlyLimit|AttemptLimit)\(\s*(?:\{\s*name: )?'([a-z_]+)'/g),
  'NOTIFY channels, and the table of migrations': () => inSources(/ = '(gatehouse_\w+)';/g),
  'topics of changes': () => union('ChangeTopic'),
  'record kinds': () => union('RecordKind'),
  'outcomes of the Redis scripts': () => inSources(/return \{ '([a-z_]+)'/g),
  actions: () => ACTIONS,
  'causes of an end': () => Object.keys(CAUSES),
  'form fields': () => inSources(/ name="(\w+)"/g, textOf('views', '.ejs')),
  settings: () => [...knownSettings.keys()],
  commands: () =>
    commandsOf(createProgram(idle, { json: false })).flatMap(([words, { options }]) => [
      words,
      ...options.map(({ long }) => `${words} ${long}`),
    ]),
  'codes of refusals': () => inSources(/(?:Refusal|super)\(\s*'([a-z_]+)'/g),
  'codes of OAuth errors': () => inSources(/OAuthError\(\s*\d{3},\s*'([a-z_]+)'/g),
};

/** What a release ended deliberately: each entry as in frozen.json of the previous release, with the reason. */
const ENDED: Readonly<Record<string, string>> = {};

if (previousRelease) {
  const { root, version } = previousRelease;
  const textsIn = (at: string, folder: string) =>
    readdirSync(path.join(at, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name }) => path.join(parentPath, name))
      .map((file) => `${path.relative(at, file)}\n${readFileSync(file, 'utf8')}`);

  describe(`the previous release, ${version}`, () => {
    it('frozen.json still contains all names and formats of the previous release', () => {
      const released = JSON.parse(readFileSync(path.join(root, 'test/frozen.json'), 'utf8')) as Frozen;
      const missing = Object.entries(released).flatMap(([what, names]) =>
        names.filter((name) => !FROZEN[what]?.includes(name)).map((name) => `${what}: ${name}`),
      );
      expect(missing.filter((one) => !Object.hasOwn(ENDED, one))).to.deep.equal([]);
    });

    it('no migration of the previous release has changed', () => {
      const folder = 'src/storage/migrations';
      expect(textsIn(ROOT, folder)).to.include.members(textsIn(root, folder));
    });

    it('the production settings file of the previous release is valid', () => {
      const environment = { ...keysOfEnvironment, DATABASE_URL: 'postgres://db/gatehouse', REDIS_URL: 'redis://redis' };
      checkSettings({ file: path.join(root, 'config/production.example.yaml'), environment });
    });

    it('the archived sources of the current release match the repository', () => {
      if (version !== packageFile.version) return;
      for (const folder of ['bin', 'config', 'deploy', 'src', 'views']) {
        expect(textsIn(root, folder), folder).to.have.members(textsIn(ROOT, folder));
      }
    });
  });
}

describe('names on which other programs depend do not change', () => {
  for (const [what, used] of Object.entries(NAMES)) {
    it(`these names do not change: ${what}`, () => expectFrozen(what, used()));
  }
});

const COOKIE_KEY = 'cookie-key-of-the-tests-0123456789abcdef';
const API_KEYS = '/profile/api-keys';
const SECURITY = '/profile/security';

const macOf = (purpose: string, text: string): string =>
  createHmac('sha256', COOKIE_KEY).update(`${purpose}:${text}`).digest('base64url');

function openSealed(purpose: string, sealed: string): unknown {
  const [text = '', mac] = sealed.split('.');
  expect(mac, KEEP).to.equal(macOf(purpose, text));
  return JSON.parse(Buffer.from(text, 'base64url').toString());
}

const cookieOf = (browser: Person, name: string): string =>
  new RegExp(`(?<=gate_${name}=)[^;]+`).exec(browser.cookieHeader('/'))?.[0] ?? '';
const parameter = ({ location }: Page, name: string): string => location?.searchParams.get(name) ?? '';
const lastSegment = ({ url }: Page): string => url.pathname.split('/').at(-1) ?? '';

/** A running service writes all values, and these tests decrypt and parse them without its code. */
describeOn([postgresServer, redisServer], 'frozen formats', () => {
  const on = startWithUpstream({ start: startsOn('postgres+redis') });
  let redis: Redis;
  let person: SignedInPerson;
  let owner: SignedInPerson;
  /** Names for the values that a test knows, so that `shape` notices swapped values. */
  let known: Map<unknown, string>;

  before(async () => {
    const { seeded, service } = on;
    redis = new Redis(service.settings.storage.redisUrl ?? '');
    person = await signedIn(service, seeded.person);
    owner = await signedIn(service, seeded.other);
    known = new Map([
      [seeded.person.accountId, '<account>'],
      [seeded.other.accountId, '<owner>'],
      [seeded.clients.confidential.id, '<client>'],
      [seeded.clients.machine.id, '<machine>'],
    ]);
    for (const kind of ['homepage', 'support', 'privacy']) {
      await service.database.query(`UPDATE clients SET ${kind}_url = $1`, [`https://partner.example/${kind}`]);
    }
  });
  after(() => redis?.disconnect());

  /** Returns a line for each member of the value, with the name of a `known` value or else the type. */
  function membersOf(value: unknown, at = ''): string[] {
    if (known.has(value)) return [`${at}: ${known.get(value)}`];
    if (value === null || typeof value !== 'object') return [`${at}: ${value === null ? 'null' : typeof value}`];
    if (Object.keys(value).length === 0) return [`${at}: ${Array.isArray(value) ? '[]' : '{}'}`];
    // In the outermost array, each place has its own meaning; any other array is a list.
    const nameOf = (name: string): string => (Array.isArray(value) && at !== '' ? '[]' : `.${name}`);
    return Object.entries(value).flatMap(([name, member]) => membersOf(member, at + nameOf(name)));
  }
  const expectShape = (what: string, value: unknown): void => expectFrozen(`format: ${what}`, membersOf(value));

  const valueIn = async (letter: string, id: string): Promise<string> => {
    const value = await redis.get(`gh:${letter}:${sha256(id).slice(0, 22)}`);
    expect(value, `Redis has gh:${letter}:… — ${KEEP}`).to.be.a('string');
    return value ?? '';
  };
  const recordIn = async (letter: string, id: string): Promise<unknown> =>
    JSON.parse((await valueIn(letter, id)).replace(/^\d+:/, ''));
  const sessionOf = async (browser: Person) =>
    (await recordIn('s', cookieOf(browser, 'session'))) as { uid: string; acr: string; amr: string[] };

  /** Opens a one-time value that is stored under `name` for `holder`. */
  async function openKept(holder: string, name: string): Promise<unknown> {
    const sealed = Buffer.from(String(await recordIn('o', name)), 'base64url');
    const key = hkdfSync('sha256', name, holder, 'gatehouse shown once', 32);
    const decipher = createDecipheriv('aes-256-gcm', Buffer.from(key), sealed.subarray(0, 12));
    decipher.setAuthTag(sealed.subarray(12, 28));
    const text = Buffer.concat([decipher.update(sealed.subarray(28)), decipher.final()]);
    return JSON.parse(text.toString());
  }

  /** Opens a form draft or submit result that is stored for this browser. */
  async function openDraft(browserId: string, kind: string, name: string): Promise<unknown> {
    const packed = await openKept(`${browserId} ${kind} ${on.seeded.person.accountId}`, name);
    return JSON.parse(gunzipSync(Buffer.from(String(packed), 'base64')).toString());
  }

  it('the names of metrics and of their labels do not change', async () => {
    const { database, issuer } = on.service;
    await database.query('UPDATE lasting_numbers SET imported_at = now()');
    await exchangeCode(issuer, on.seeded.clients.confidential, 'no code');
    const samples = await scrape(on.service);
    const names = [...samples.keys()]
      .filter((sample) => /^gatehouse_(?!.*_(bucket|sum))/.test(sample))
      .map((sample) => sample.replace(/="[^"]*"/g, ''));
    expectFrozen('metrics', names);
  });

  it('the formats of a notice, a form token and the cookie of a known browser do not change', async () => {
    await person.send('/profile/connections/disconnect-all');
    const { uid, acr } = await sessionOf(person);
    const mark = sha256(`session ${uid}`).slice(0, 22);
    known.set(mark, '<session>');
    expectShape('notice', openSealed('notice', cookieOf(person, 'notice')));
    const held = `${on.seeded.person.accountId}.${mark}`;
    expect(fieldOf(await person.get('/errors'), 'form_token'), KEEP).to.equal(
      `${held}.${macOf('form', `${cookieOf(person, 'form')}.${held}`)}`,
    );
    const [accountId, nonce, since, mac] = cookieOf(person, 'device').split('.');
    expect(mac, KEEP).to.equal(macOf('device', `${accountId}.${nonce}.${since}.${acr}`));
  });

  it('the format of the challenge that a passkey signs does not change', async () => {
    const { accountId } = on.seeded.person;
    const purposes = { 'sign-in': 'sign in', confirm: `confirm ${accountId}`, add: `add ${accountId}` };
    for (const what of ['sign-in', 'confirm', 'add'] as const) {
      const { challenge } = await optionsFor(person, what);
      const text = `${cookieOf(person, 'form')}.${challenge.slice(0, 32)}.${purposes[what]}`;
      expect(challenge.slice(32), KEEP).to.equal(macOf('passkey', text));
    }
  });

  it('the formats of an interaction, a consent page and an approval do not change', async () => {
    const { email, password } = on.seeded.person;
    const browser = on.traveller();
    const signIn = await browser.open(authorizationUrl(on.service.issuer, on.seeded.clients.confidential));
    expectShape('interaction', await recordIn('i', lastSegment(signIn)));
    const consent = await browser.follow(await browser.submit(signIn, { email, password }));
    expectShape('consent page', openSealed('consent', fieldOf(consent, 'shown')));
    await browser.submit(consent, { decision: 'approve' });
    const uid = lastSegment(consent);
    expectShape('approved interaction', await recordIn('i', uid));
    expectShape('answered interaction', await recordIn('i', `${uid}-answered`));
  });

  it('the stored formats of sessions and of their sign-in proofs do not change', async () => {
    const own = await sessionOf(person);
    expectShape('session', own);
    const pointer = await recordIn('u', own.uid);
    expect(await redis.exists(String(pointer)), KEEP).to.equal(1);
    expectShape('proof of a password', JSON.parse(own.amr[0] ?? ''));
    const traveller = on.traveller();
    on.upstream.lie = { claims: (claims) => ({ ...claims, acr: 'urn:strong', amr: ['otp'] }) };
    await on.signIn(GRACE, traveller);
    on.upstream.lie = {};
    expectShape('proof of a provider', JSON.parse((await sessionOf(traveller)).amr[0] ?? ''));
  });

  it('the formats of an authorization and of a machine access token do not change', async () => {
    const { clients } = on.seeded;
    const code = await partnerTokens(on.service.issuer, on.seeded).code(clients.confidential);
    const id = code.slice('gate_ac_'.length, 30);
    const [, state, facts = ''] = /^([^:]+):(.*)$/.exec(await valueIn('z', id)) ?? [];
    expect(state, KEEP).to.match(/^-1!!\d{13}!0!\d{10}!0!\d{10}!0!0$/);
    expectShape('authorization', JSON.parse(facts));
    const ending = 'frozen_with_an_end_0000';
    const lifetimes = { codeSeconds: 600, absoluteSeconds: 86_400 };
    const { store } = on.service;
    await store.beginAuthorization(ending, (await store.readAuthorization(id)) ?? expect.fail(KEEP), lifetimes);
    expect(await valueIn('z', ending), KEEP).to.match(/^-1!!\d{13}!0!\d{10}!\d{10}!\d{10}!0!0:/);
    const { body } = await clientCredentials(on.service.issuer, clients.machine);
    expectShape('machine access token', await recordIn('m', String(body.access_token)));
  });

  it('the JSON keys that operator commands print do not change', async () => {
    const { person: holder, clients, organization } = on.seeded;
    await partnerTokens(on.service.issuer, on.seeded).tokens(clients.confidential);
    await apiKeyOf(on.service, holder);
    const lists = ['accounts', 'organizations', 'warehouses', 'memberships', 'clients', 'connections', 'api-keys'];
    for (const words of [
      ...lists.map((one) => (['memberships', 'connections'].includes(one) ? `${one} list ACCOUNT` : `${one} list`)),
      'sessions list ACCOUNT',
      'organizations add --name Frozen',
      'warehouses add --name Frozen --organization ORGANIZATION',
      'audit --limit 1',
    ]) {
      const named = words.replace('ACCOUNT', `--account ${holder.email}`).replace('ORGANIZATION', organization.id);
      const answer = [await valueFrom(operatorFor(on.service), named)].flat();
      expect(answer, words).to.not.deep.equal([]);
      expectFrozen(`keys of ${words}`, answer.flatMap(Object.keys));
    }
  });

  it('codes and tokens keep their format', async () => {
    const { confidential, machine, resourceServer } = on.seeded.clients;
    const { issuer } = on.service;
    const expectFormat = (value: unknown, prefix: string, length: string): void => {
      const form = new RegExp(`^(${prefix}[A-Za-z0-9_-]{${length}})([A-D][A-Za-z0-9_-]{5})$`);
      const [, text = '', checksum] = form.exec(String(value)) ?? [];
      const bytes = Buffer.alloc(6);
      bytes.writeUInt32BE(crc32(text), 2);
      expect(checksum, KEEP).to.equal(bytes.toString('base64url').slice(2));
    };
    const code = await partnerTokens(issuer, on.seeded).code(confidential);
    expectFormat(code, 'gate_ac_', '65');
    const { accessToken, refreshToken } = await granted(exchangeCode(issuer, confidential, code));
    expectFormat(accessToken, 'gate_at_', '89');
    const { body } = await introspect(issuer, resourceServer, accessToken);
    expectFrozen('members of an introspection answer', Object.keys(body));
    expectFormat(refreshToken, 'gate_rt_', '66,73');
    expect((await refresh(issuer, confidential, refreshToken)).status, KEEP).to.equal(200);
    expectFormat((await granted(clientCredentials(issuer, machine))).accessToken, 'gate_mt_', '43');
  });

  it('the format of a pending sign-in at a provider does not change', async () => {
    const begin = async (what: string, page: string | URL, fields: Fields = WITH_PLATFORM, browser?: Person) => {
      const visitor = browser ?? on.traveller();
      const there = await visitor.submit(await visitor.open(page), fields);
      const pending = await openKept(cookieOf(visitor, 'upstream'), parameter(there, 'state'));
      expectShape(`sign-in at a provider ${what}`, pending);
    };
    await begin('from the sign-in page', '/login');
    await begin('in an interaction', authorizationUrl(on.service.issuer, on.seeded.clients.confidential));
    await begin('that links', SECURITY, { link_with: 'platform' }, owner);
    await begin('that confirms', SECURITY, { confirm_with: 'platform' }, person);
  });

  it('the formats of a one-time secret and of the form that created it do not change', async () => {
    const { other, person: holder } = on.seeded;
    const fields = { name: 'Export', expires_in_days: '30' };
    const made = await person.submit(await person.get(API_KEYS), fields);
    expectShape('new API key', await openKept(holder.accountId, parameter(made, 'once')));

    const form = await owner.get(`${LIST}/new`);
    const added = await owner.submit(form, { name: 'Second', redirect_uris: REDIRECT_URI });
    const [, , , id = ''] = added.location?.pathname.split('/') ?? [];
    const content = JSON.stringify([fieldOf(form, 'creation_key'), 'Second', REDIRECT_URI]);
    const once = parameter(added, 'once');
    expect(once, KEEP).to.equal(sha256(`shown ${id} ${content}`));
    const rows = await on.service.database.query('SELECT creation_key FROM clients WHERE id = $1', [id]);
    expect(rows, KEEP).to.deep.equal([{ creation_key: sha256(`made ${content}`) }]);
    expectShape('new client secret', await openKept(other.accountId, once));
  });

  it('the formats of a form result and of a draft stored before a sign-in do not change', async () => {
    const { host, port } = new URL(on.service.issuer);
    const page = await person.get(API_KEYS);
    const answer = await rawRequest(Number(port), `${LIST}/new`, {
      // These headers make the request a navigation; `fetch` cannot set them.
      headers: {
        host,
        cookie: person.cookieHeader('/'),
        'sec-fetch-site': 'same-origin',
        'sec-fetch-mode': 'navigate',
      },
      form: { form_token: fieldOf(page, 'form_token'), name: '', redirect_uris: 'nowhere' },
    });
    const [, kept = ''] = /answer=(.+)/.exec(answer.headers.get('location') ?? '') ?? [];
    const [, browserId = ''] = /gate_browser=([^;]+)/.exec(answer.headers.getSetCookie().join()) ?? [];
    const result = await openDraft(browserId, 'answer', kept);
    expectShape('form result', result);
    // The service stores only headers that the response has: this one had no `Retry-After`.
    expectFrozen(
      'headers of a form result',
      (result as { headers: [string, string][] }).headers.map(([name]) => name),
    );
    await person.submit(await person.get('/logout'), {});
    const late = await person.submit(page, { name: 'Typed' });
    const typed = await openDraft(cookieOf(person, 'browser'), 'typed', parameter(late, 'form'));
    expect(typed, KEEP).to.deep.include(['name', 'Typed']);
  });

  it('JSON values in database tables keep their format', async () => {
    const valuesIn = async (table: string, column: string) => {
      const rows = await on.service.database.query<{ json: object }>(`SELECT ${column} AS json FROM ${table}`);
      return rows.map(({ json }) => json);
    };
    const [runsWith] = await valuesIn('node_keys', 'runs_with');
    expectShape('node_keys.runs_with', { ...runsWith, settings: 'named as in the settings file' });
    // These rows were written by everything that the tests above have done.
    expectFrozen('activity.details', (await valuesIn('activity', 'details')).flatMap(Object.keys));
  });

  it('these tests check every entry of frozen.json', () => {
    expect(Object.keys(isWriting ? FROZEN : found).sort()).to.deep.equal(Object.keys(FROZEN));
  });
});
