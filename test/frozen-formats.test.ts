/** Formats that nodes of two versions exchange during an upgrade, and stored formats. */
import { createDecipheriv, createHmac, hkdfSync } from 'node:crypto';
import { crc32, gunzipSync } from 'node:zlib';
import { expect } from 'chai';
import { Redis } from 'ioredis';
import pg from 'pg';
import { sha256 } from '../src/base/random-id.ts';
import { LIST, REDIRECT_URI } from './pages/client-owner.ts';
import { optionsFor } from './pages/passkeys/soft-passkey.ts';
import { fieldOf, type SignedInPerson, signedIn } from './pages/signed-in-person.ts';
import { partnerTokens } from './provider/partner-tokens.ts';
import { GRACE, startWithUpstream, WITH_PLATFORM } from './sign-in-upstream/service.ts';
import { atEndOfFile } from './support/end-of-run.ts';
import { eventually } from './support/eventually.ts';
import { authorizationUrl, clientCredentials, exchangeCode } from './support/oauth.ts';
import type { Fields, Page, Person } from './support/person.ts';
import { rawRequest } from './support/raw-request.ts';
import { describeOn, postgresServer, redisServer } from './support/requirements.ts';
import { startsOn } from './support/service.ts';

const KEEP = 'Old and new nodes exchange this, and it is stored: keep names and order as they are';
const COOKIE_KEY = 'cookie-key-of-the-tests-0123456789abcdef';
const NO_CODE = `gate_ac_${'x'.repeat(65)}`;
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

/**
 * A running service writes all values, and these tests decrypt and parse the values without the
 * code of the service.
 */
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
      const url = `https://partner.example/${kind}`;
      await service.database.query(`UPDATE clients SET ${kind}_url = $1`, [url]);
    }
  });
  after(() => redis?.disconnect());

  /**
   * Describes a value as text: its sorted property names, with the name of each `known` value and
   * the type of any other.
   */
  function shape(value: unknown): string {
    if (known.has(value)) return known.get(value) ?? '';
    if (Array.isArray(value)) return `[${[...new Set(value.map(shape))].join(', ')}]`;
    if (value === null || typeof value !== 'object') return value === null ? 'null' : typeof value;
    const names = Object.keys(value).sort();
    const members = names.map((name) => `${name}: ${shape((value as Record<string, unknown>)[name])}`);
    return members.length === 0 ? '{ }' : `{ ${members.join(', ')} }`;
  }

  /** @param used the value that is stored or sent, or a text that describes several values */
  function expectFrozen(used: unknown, frozen: string): void {
    const text = typeof used === 'string' ? used : shape(used);
    expect(text, KEEP).to.equal(frozen.replace(/\s+/g, ' '));
  }

  const valueIn = async (letter: string, id: string): Promise<string> => {
    const value = await redis.get(`gh:${letter}:${sha256(id).slice(0, 22)}`);
    expect(value, `Redis has gh:${letter}:… — ${KEEP}`).to.be.a('string');
    return value ?? '';
  };
  const recordIn = async (letter: string, id: string): Promise<unknown> =>
    JSON.parse((await valueIn(letter, id)).replace(/^\d+:/, ''));

  async function sessionOf(browser: Person) {
    const session = await recordIn('s', cookieOf(browser, 'session'));
    return session as { uid: string; acr: string; amr: string[] };
  }

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
    const owner = `${browserId} ${kind} ${on.seeded.person.accountId}`;
    const packed = await openKept(owner, name);
    return JSON.parse(gunzipSync(Buffer.from(String(packed), 'base64')).toString());
  }

  const flow = (purpose: string): string =>
    `{ flow: { asksWho: boolean, begunAt: number, codeVerifier: string, isFresh: boolean,
      nonce: string }, provider: string, purpose: { ${purpose} } }`;

  it('the format of a notice is frozen', async () => {
    await person.send('/profile/connections/disconnect-all');
    known.set(sha256(`session ${(await sessionOf(person)).uid}`).slice(0, 22), '<session>');
    expectFrozen(
      openSealed('notice', cookieOf(person, 'notice')),
      '{ mark: <session>, message: { key: string }, path: string, sentence: string, until: number }',
    );
  });

  it('the formats of a form token and of the cookie of a known browser are frozen', async () => {
    const { uid, acr } = await sessionOf(person);
    const held = `${on.seeded.person.accountId}.${sha256(`session ${uid}`).slice(0, 22)}`;
    expect(fieldOf(await person.get('/errors'), 'form_token'), KEEP).to.equal(
      `${held}.${macOf('form', `${cookieOf(person, 'form')}.${held}`)}`,
    );
    const [accountId, nonce, since, mac] = cookieOf(person, 'device').split('.');
    const text = `${accountId}.${nonce}.${since}.${acr}`;
    expect(mac, KEEP).to.equal(macOf('device', text));
  });

  it('the format of the challenge that a passkey signs is frozen', async () => {
    const { accountId } = on.seeded.person;
    const purposes = {
      'sign-in': 'sign in',
      confirm: `confirm ${accountId}`,
      add: `add ${accountId}`,
    };
    for (const what of ['sign-in', 'confirm', 'add'] as const) {
      const { challenge } = await optionsFor(person, what);
      const text = `${cookieOf(person, 'form')}.${challenge.slice(0, 32)}.${purposes[what]}`;
      expect(challenge.slice(32), KEEP).to.equal(macOf('passkey', text));
    }
  });

  it('the formats of an interaction, a consent page and an approval are frozen', async () => {
    const { email, password } = on.seeded.person;
    const login = '{ accountId: <account>, acr: string, amr: [string], ts: number }';
    const interaction = (more: string) =>
      `{ cid: string, iat: number, kind: string,${more} params: { client_id: <client>,
        redirect_uri: string, response_type: string, state: string }, prompt: { details: { },
        name: string, reasons: [string] },`;
    const session = 'session: { accountId: <account>, acr: string, amr: [string], uid: string }';
    const unlimited = '{ isReadOnly: boolean, places: null, until: null }';
    const asked = (more: string) => `{ accountId: <account>,${more} clientId: <client>,
      hosts: [string], interaction: string, isVerified: boolean, limit: ${unlimited},
      links: { homepage: string, privacy: string, support: string }, name: string,
      providedBy: string }`;

    const browser = on.traveller();
    const signIn = await browser.open(authorizationUrl(on.service.issuer, on.seeded.clients.confidential));
    expectFrozen(await recordIn('i', lastSegment(signIn)), `${interaction('')} returnTo: string }`);
    const consent = await browser.follow(await browser.submit(signIn, { email, password }));
    expectFrozen(openSealed('consent', fieldOf(consent, 'shown')), asked(''));
    await browser.submit(consent, { decision: 'approve' });
    const uid = lastSegment(consent);
    expectFrozen(
      await recordIn('i', uid),
      `${interaction(` lastSubmission: { login: ${login} },`)}
        result: { consent: { asked: ${asked(` chosenLimit: ${unlimited},`)} }, login: ${login} }, returnTo: string, ${session},
        trusted: [] }`,
    );
    expectFrozen(await recordIn('i', `${uid}-answered`), '{ restart: string }');
  });

  it('the formats of a session and of a session from a provider are frozen', async () => {
    const session = `{ accountId: <account>, acr: string, amr: [string], iat: number,
      kind: string, loginTs: number, seenAt: number, uid: string }`;
    const own = await sessionOf(person);
    expectFrozen(own, session);
    const pointer = await recordIn('u', own.uid);
    expect(await redis.exists(String(pointer)), KEEP).to.equal(1);
    expect(own.amr, KEEP).to.deep.equal(['password']);
    const traveller = on.traveller();
    on.upstream.lie = { claims: (claims) => ({ ...claims, acr: 'urn:strong', amr: ['otp'] }) };
    await on.signIn(GRACE, traveller);
    on.upstream.lie = {};
    const [method, time, proof = ''] = (await sessionOf(traveller)).amr;
    expect([method, time], KEEP).to.deep.equal(['upstream', '0']);
    expectFrozen(JSON.parse(proof), '{ acr: string, amr: [string], issuer: string }');
  });

  it('the formats of an authorization and of a machine access token are frozen', async () => {
    const { clients } = on.seeded;
    const code = await partnerTokens(on.service.issuer, on.seeded).code(clients.confidential);
    const id = code.slice('gate_ac_'.length, 30);
    const [, state, facts = ''] = /^([^:]+):(.*)$/.exec(await valueIn('z', id)) ?? [];
    expect(state, KEEP).to.match(/^-1!!\d{13}!0!\d{10}!\d{10}!\d{10}$/);
    expectFrozen(JSON.parse(facts), '[<account>, <client>, number, string]');
    const { body } = await clientCredentials(on.service.issuer, clients.machine);
    expectFrozen(await recordIn('m', String(body.access_token)), '[<machine>, number]');
  });

  it('codes and tokens have the frozen format', async () => {
    const { confidential, machine } = on.seeded.clients;
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
    const exchanged = await exchangeCode(issuer, confidential, code);
    expectFormat(exchanged.body.access_token, 'gate_at_', '89');
    expectFormat(exchanged.body.refresh_token, 'gate_rt_', '66,73');
    const issued = await clientCredentials(issuer, machine);
    expectFormat(issued.body.access_token, 'gate_mt_', '43');
  });

  it('the format of a pending sign-in at a provider is frozen', async () => {
    const { issuer } = on.service;
    const from = async (page: string | URL, fields: Fields = WITH_PLATFORM, browser: Person = on.traveller()) => {
      const there = await browser.submit(await browser.open(page), fields);
      return openKept(cookieOf(browser, 'upstream'), parameter(there, 'state'));
    };
    expectFrozen(await from('/login'), flow('isFresh: boolean, target: string'));
    expectFrozen(
      await from(authorizationUrl(issuer, on.seeded.clients.confidential)),
      flow('interaction: string, isFresh: boolean, target: string'),
    );
    expectFrozen(
      await from(SECURITY, { link_with: 'platform' }, owner),
      flow('isFresh: boolean, links: <owner>, target: string'),
    );
    expectFrozen(
      await from(SECURITY, { confirm_with: 'platform' }, person),
      flow('confirms: <account>, isFresh: boolean, resets: boolean, target: string'),
    );
  });

  it('the formats of a one-time secret and of the form that created it are frozen', async () => {
    const { other, person: holder } = on.seeded;
    const fields = { name: 'Export', expires_in_days: '30' };
    const made = await person.submit(await person.get(API_KEYS), fields);
    const key = await openKept(holder.accountId, parameter(made, 'once'));
    expectFrozen(key, '{ name: string, value: string }');

    const form = await owner.get(`${LIST}/new`);
    const added = await owner.submit(form, { name: 'Second', redirect_uris: REDIRECT_URI });
    const [, , , id = ''] = added.location?.pathname.split('/') ?? [];
    const content = JSON.stringify([fieldOf(form, 'creation_key'), 'Second', REDIRECT_URI]);
    const once = parameter(added, 'once');
    expect(once, KEEP).to.equal(sha256(`shown ${id} ${content}`));
    const query = 'SELECT creation_key FROM clients WHERE id = $1';
    const rows = await on.service.database.query(query, [id]);
    expect(rows, KEEP).to.deep.equal([{ creation_key: sha256(`made ${content}`) }]);
    expectFrozen(await openKept(other.accountId, once), '{ clientId: string, isOfNewClient: boolean, value: string }');
  });

  it('the format of a client test is frozen', async () => {
    const { other, clients } = on.seeded;
    const { id, secret: client_secret = '' } = clients.confidential;
    const { uid } = await sessionOf(owner);
    const form = await owner.get(`${LIST}/${id}/test`);
    const test = await owner.submit(form, { client_secret, keep_tokens: 'yes' });
    const name = macOf('client-test', `${uid}:${parameter(test, 'state')}`);
    expectFrozen(
      await openKept(other.accountId, name),
      '{ clientId: <client>, keepsTokens: boolean, secret: string, verifier: string }',
    );
    let page = await owner.submit(await owner.follow(test), { decision: 'approve' });
    while (!parameter(page, 'run')) page = await owner.get(page.location ?? '');
    expectFrozen(
      await openKept(other.accountId, parameter(page, 'run')),
      `{ clientId: <client>, isKept: boolean, outcome: string, steps: [{ answer: string,
        isExpected: boolean, request: string, title: string, verdict: string }] }`,
    );
    expectFrozen(
      await openKept(other.accountId, parameter(page, 'tokens')),
      '{ accessToken: string, refreshToken: string }',
    );
  });

  it('the formats of a form result and of a draft stored before a sign-in are frozen', async () => {
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
    const draft = await openDraft(browserId, 'answer', kept);
    expect(draft, KEEP).to.have.all.keys('headers', 'html', 'path', 'status');
    // The service stores only headers that the response has: this one had no `Retry-After`.
    const names = (draft as { headers: [string, string][] }).headers.map(([name]) => name);
    expect(names).to.deep.equal(['content-security-policy', 'cross-origin-opener-policy']);
    await person.submit(await person.get('/logout'), {});
    const late = await person.submit(page, { name: 'Typed' });
    const typed = await openDraft(cookieOf(person, 'browser'), 'typed', parameter(late, 'form'));
    expect(typed, KEEP).to.deep.include(['name', 'Typed']);
  });

  it('the format of notifications to other nodes about the requests of a client is frozen', async () => {
    const { settings, issuer } = on.service;
    const { confidential } = on.seeded.clients;
    const client = new pg.Client({ connectionString: settings.storage.databaseUrl });
    const request =
      '{ at: number, cause: string, clientId: <client>, error: string, grantType: string, requestId: string, step: string }';
    const messages: string[] = [];
    client.on('notification', ({ payload = '{}' }) => messages.push(shape(JSON.parse(payload))));
    atEndOfFile(() => client.end());
    await client.connect();
    await client.query('LISTEN gatehouse_messages');
    await owner.get(`${LIST}/${confidential.id}`);
    await eventually(async () => {
      await exchangeCode(issuer, confidential, NO_CODE);
      expect([...new Set(messages)], KEEP).to.deep.equal(['{ watch: <client> }', `{ requests: [${request}] }`]);
    });
  });

  it('the format of JSON in tables is frozen', async () => {
    const { database } = on.service;
    const valuesIn = async (table: string, column: string) => {
      const rows = await database.query<{ json: object }>(`SELECT ${column} AS json FROM ${table}`);
      return rows.map(({ json }) => json);
    };
    const [access] = await valuesIn('connections', 'approved_access');
    expectFrozen(
      access,
      `[{ id: string, name: string, role: string,
        warehouses: [{ id: string, name: string, rights: [string] }] }]`,
    );
    const runsWith = await eventually(async () => {
      const [json] = await valuesIn('node_keys', 'runs_with');
      expect(json).to.be.an('object');
      return json;
    });
    expectFrozen(
      { ...runsWith, settings: 'named as in the settings file' },
      `{ accessRules: number, ignoresForwardedFor: boolean, maxConnections: number, openFiles: number, redis: string,
        reload: { request: number }, settings: string, version: string }`,
    );
    // These rows were written by everything that the tests above have done.
    const details = (await valuesIn('activity', 'details')).flatMap(Object.keys);
    expectFrozen(
      [...new Set(details)].sort().join(' '),
      `api_key_id api_key_name client_id client_name issuer last_four method provider
        provider_name redirect_uris subject`,
    );
  });
});
