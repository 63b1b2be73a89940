/** Settings that change while the service runs: some apply at once, and no user is disturbed. */
import { expect } from 'chai';
import { loadSettings } from '../../src/config/load.ts';
import { reloaded } from '../../src/config/reload.ts';
import { knownSettings } from '../../src/config/schema/known-settings.ts';
import type { Effect } from '../../src/config/schema/setting.ts';
import { SENDER_VARIABLES } from '../../src/config/senders.ts';
import type { Settings } from '../../src/config/settings.ts';
import { keyFingerprint } from '../../src/storage/heartbeat.ts';
import { fileWith, keysOfEnvironment } from '../config/configuration.ts';
import { keysOf, operatorFor, valueFrom } from '../operator/run-operator.ts';
import { tokensOf } from '../provider/partner-tokens.ts';
import { failureOf } from '../storage/waiting.ts';
import { authorizationUrl, clientCredentials, exchangeCode, introspect, refresh } from '../support/oauth.ts';
import { createPerson } from '../support/person.ts';
import { rawRequest } from '../support/raw-request.ts';
import { startSeeded } from '../support/seeded.ts';
import type { Overrides } from '../support/service.ts';

describe('a reload applies changed settings without interrupting requests', () => {
  let found: Overrides = {};
  const on = startSeeded({ clock: true, reloaded: () => found });

  afterEach('restore the settings of the start', () => reloadWith({}));

  /** Reloads the settings of the start with these changes. */
  async function reloadWith(overrides: Overrides) {
    found = overrides;
    const { changed, needsRestart } = await on.service.reload();
    return { changed, needsRestart };
  }

  it('a reload changes the retry window, also for existing chains of refresh tokens', async () => {
    const { confidential } = on.clients;
    const { refreshToken } = await on.partner.tokens(confidential);
    expect((await refresh(on.issuer, confidential, refreshToken)).status).to.equal(200);
    expect((await refresh(on.issuer, confidential, refreshToken)).status).to.equal(200);
    await reloadWith({ tokens: { retryWindowSeconds: 0 } });
    const strict = await refresh(on.issuer, confidential, refreshToken);
    expect(strict.status).to.equal(400);
    expect(strict.body.error).to.equal('invalid_grant');
  });

  it('a reload changes the lifetime of tokens issued afterwards, not of codes and tokens issued before', async () => {
    const { confidential, machine } = on.clients;
    const before = await on.partner.tokens(confidential);
    const machineToken = tokensOf(await clientCredentials(on.issuer, machine)).accessToken;
    const code = await on.partner.code(confidential);
    const tokens = {
      authorizationCodeSeconds: 1,
      accessTokenSeconds: 1,
      machineAccessTokenSeconds: 1,
      refreshTokenSeconds: 1,
      absoluteAgeSeconds: 1,
    };
    await reloadWith({ tokens });
    const short = await on.partner.tokens(confidential);
    expect((await clientCredentials(on.issuer, machine)).body.expires_in).to.equal(1);
    on.clock.advance(10);
    const isActive = (token: string) => on.partner.isActive(token);
    expect(await isActive(before.accessToken)).to.equal(true);
    expect(await isActive(machineToken)).to.equal(true);
    expect((await exchangeCode(on.issuer, confidential, code)).status).to.equal(200);
    const next = await refresh(on.issuer, confidential, before.refreshToken);
    expect(next.status).to.equal(200);
    expect(next.body.expires_in).to.equal(1);

    expect(await isActive(short.accessToken)).to.equal(false);
    expect((await refresh(on.issuer, confidential, short.refreshToken)).status).to.equal(400);
    on.clock.advance(10);
    const late = await refresh(on.issuer, confidential, String(next.body.refresh_token));
    expect(late.status).to.equal(400);
  });

  it('a reload changes the limit of wrong client secrets', async () => {
    const { otherConfidential } = on.clients;
    await reloadWith({ limits: { clientFailures: 1 } });
    const wrong = { ...otherConfidential, secret: `${otherConfidential.secret}x` };
    expect((await introspect(on.issuer, wrong, 'any')).status).to.equal(401);
    expect((await introspect(on.issuer, wrong, 'any')).status).to.equal(429);
  });

  it('a reload enables and disables the pages that need mail', async () => {
    const person = createPerson(on.issuer);
    const visit = async () => (await person.get('/forgot-password')).status;
    expect(await visit()).to.equal(404);
    const mail = { smtpUrl: 'smtp://127.0.0.1:1', from: 'gatehouse@example.test' };
    expect((await reloadWith({ mail })).changed).to.deep.equal(['mail.smtp_url', 'mail.from']);
    expect(await visit()).to.equal(200);
    await reloadWith({});
    expect(await visit()).to.equal(404);
  });

  it('a reload applies changed settings for proxies and logging', async () => {
    const { port } = new URL(on.issuer);
    const headers = { host: `localhost:${port}`, 'x-forwarded-for': '203.0.113.9' };
    const loggedAddress = async (path: string): Promise<unknown> => {
      await rawRequest(Number(port), path, { headers });
      const entries = on.service.logLines.map((line): Record<string, unknown> => JSON.parse(line));
      return entries.find((entry) => entry.path === path)?.ip;
    };
    expect(await loggedAddress('/errors/one')).to.match(/127\.0\.0\.1$/);
    await reloadWith({ server: { proxyHops: 1 } });
    expect(await loggedAddress('/errors/two')).to.equal('203.0.113.9');
    await reloadWith({ log: { level: 'silent' } });
    expect(await loggedAddress('/errors/three')).to.equal(undefined);
    await reloadWith({});
    expect(await loggedAddress('/errors/four')).to.match(/127\.0\.0\.1$/);
  });

  it('a reload is refused without any change if the service could not start with the new settings', async () => {
    const mail = { smtpUrl: 'nowhere', from: '' };
    const tokens = { machineAccessTokenSeconds: 78 };
    found = { mail, tokens };
    expect(await failureOf(on.service.reload())).to.be.instanceOf(Error);
    const { machine } = on.clients;
    expect((await clientCredentials(on.issuer, machine)).body.expires_in).to.equal(3600);
    expect((await createPerson(on.issuer).get('/forgot-password')).status).to.equal(404);
    expect(on.service.logLines.join('')).to.include('settings not reloaded');
    // The failed reload left no trace.
    const next = await reloadWith({ tokens });
    expect(next.changed).to.deep.equal(['tokens.machine_access_token']);
  });

  it('a reload neither interrupts a pending sign-in or approval nor applies settings that need a restart', async () => {
    const { confidential } = on.clients;
    const browser = createPerson(on.issuer);
    const url = authorizationUrl(on.issuer, confidential, { prompt: 'consent' });
    const signIn = await browser.follow(await browser.get(url));
    await reloadWith({ issuer: 'https://elsewhere.example', tokens: { authorizationCodeSeconds: 300 } });
    const { email, password } = on.seeded.person;
    const consent = await browser.follow(await browser.submit(signIn, { email, password }));
    expect(consent.html).to.include('approve');
    await reloadWith({});
    const back = await browser.follow(await browser.submit(consent, { decision: 'approve' }));
    const code = back.location?.searchParams.get('code') ?? '';
    await reloadWith({ tokens: { accessTokenSeconds: 600 } });
    const answer = await exchangeCode(on.issuer, confidential, code);
    expect(answer.status, answer.text).to.equal(200);
    expect(answer.body.expires_in).to.equal(600);
  });

  it('no request is lost while the settings are reloaded', async () => {
    const { machine, resourceServer, confidential } = on.clients;
    const { accessToken } = await on.partner.tokens(confidential);
    for (let turn = 0; turn < 4; turn += 1) {
      const ask = async () => [
        (await clientCredentials(on.issuer, machine)).status,
        (await introspect(on.issuer, resourceServer, accessToken)).body.active,
        (await on.partner.browser.get('/profile')).status,
      ];
      const overrides = { tokens: { machineAccessTokenSeconds: 100 + turn }, server: { proxyHops: turn % 2 } };
      const asked = Array.from({ length: 10 }, ask);
      const { changed } = await reloadWith(overrides);
      asked.push(ask());
      expect(changed).to.include('tokens.machine_access_token');
      for (const answers of await Promise.all(asked)) expect(answers).to.deep.equal([200, true, 200]);
    }
  });

  it('after a reload `operator keys` shows new keys at once', async () => {
    const { cookieKeys, tokenKeys } = on.service.settings.secrets;
    const secrets: Settings['secrets'] = {
      cookieKeys: ['d'.repeat(40), ...cookieKeys],
      tokenKeys: ['u'.repeat(40), ...tokenKeys],
    };
    await reloadWith({ secrets });
    const operator = operatorFor(on.service, keysOf({ settings: { secrets } }));
    const { nodes } = await valueFrom(operator, 'keys');
    const fingerprints = [...secrets.cookieKeys, ...secrets.tokenKeys].map(keyFingerprint);
    expect([...nodes[0].cookie_keys, ...nodes[0].token_keys]).to.deep.equal(fingerprints);
  });
});

describe('the schema says for each setting when a change takes effect', () => {
  const environment = {
    ...keysOfEnvironment,
    DATABASE_URL: 'postgres://db/gatehouse',
    REDIS_URL: 'redis://redis',
    SMTP_URL: 'smtp://mail',
  };
  const file = fileWith(
    'mail: { from: a@b.example }\nsessions: { shared_terminals: [192.0.2.0/24] }\n' +
      'api: { graphql_url: "https://api.example", test_organizations: [] }\n',
  );
  const before = loadSettings({ environment, file });
  const changed = (value: unknown): unknown => {
    if (Array.isArray(value)) return [...value, 'k'.repeat(32)];
    if (typeof value === 'object') return mapped({ ...value });
    if (typeof value === 'boolean') return !value;
    return typeof value === 'number' ? value + 1 : `${value}x`;
  };
  const mapped = (values: object) =>
    Object.fromEntries(Object.entries(values).map(([name, value]) => [name, changed(value)]));
  /** Settings of the brand that have no default. */
  const logo = { type: 'png', base64: 'AA==', width: 1, height: 1 };
  const link = 'https://brand.example/';
  const links = { homeUrl: link, support: link, privacyUrl: link, termsUrl: link };
  const brand = { ...before.brand, name: 'Acme', logo, logoDark: logo, colour: '0b5cad', ...links };
  // Neither do the words of rights.
  const rights = { read: 'view', write: 'edit', manage: 'run' };
  const after = { ...mapped(before), brand, rights } as unknown as Settings;

  it('the JSON Schema states correctly which settings a reload applies and which need a restart', () => {
    const named = (wanted: Effect): string[] =>
      [...knownSettings.values()].filter(({ effect }) => effect === wanted).map(({ name }) => name);
    const reload = reloaded(before, after);
    const secrets = [...Object.keys(keysOfEnvironment), ...Object.values(SENDER_VARIABLES)];
    expect(reload.changed).to.have.members([...named('reload'), ...secrets]);
    expect(reload.needsRestart).to.have.members(named('restart'));
    const again = reloaded(reload.settings, after);
    expect(again).to.deep.equal({ ...reload, changed: [] });
    expect(reload.settings.isLoopback).to.equal(before.isLoopback);
    expect(reloaded(before, reload.settings).needsRestart).to.deep.equal([]);
  });
});
