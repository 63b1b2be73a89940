/** After a run of the service with failures, no secret is in the log or on /metrics. */
import { expect } from 'chai';
import { randomId, withChecksum } from '../../src/base/random-id.ts';
import { eventually } from '../support/eventually.ts';
import { startMailServer } from '../support/mail-server.ts';
import {
  ask,
  authorizationUrl,
  basic,
  clientCredentials,
  exchangeCode,
  introspect,
  pkce,
  postForm,
  refresh,
  revokeCurrent,
} from '../support/oauth.ts';
import { createPerson } from '../support/person.ts';
import { freshMigratedDatabaseUrl } from '../support/postgres-server.ts';
import { rawRequest } from '../support/raw-request.ts';
import { startRedisServer } from '../support/redis-server.ts';
import { describeOn, postgresServer, redisServer } from '../support/requirements.ts';
import { seed } from '../support/seed.ts';
import { startsOn } from '../support/service.ts';

/** All forms in which a value may have been written, whole or in part. */
function spellings(secret: string): string[] {
  const base64 = (text: string) => Buffer.from(text).toString('base64');
  // In the Base64 of a longer text a secret has one of three forms, whose ends depend on the characters next to it.
  const within = ['', 'x', 'xx'].map((before) => base64(before + secret).slice(4, -4));
  const spelled = [secret, encodeURIComponent(secret), secret.slice(0, -4), base64(secret)];
  return [...spelled, ...within, Buffer.from(secret).toString('hex'), secret.slice(-16)];
}

describeOn([postgresServer, redisServer], 'the log and the metrics', () => {
  const start = startsOn();

  it('log and metrics contain no secret after every kind of secret was used, correctly and incorrectly', async () => {
    // Any password works: Redis accepts any for its default user, and PostgreSQL trusts this machine.
    const redisPassword = randomId('', 24);
    const redis = await startRedisServer();
    const databasePassword = randomId('', 24);
    const databaseUrl = new URL(await freshMigratedDatabaseUrl());
    databaseUrl.password = databasePassword;
    const mailPassword = randomId('', 24);
    const mailServer = await startMailServer(['gate', mailPassword]);
    const smtpUrl = new URL(mailServer.url);
    [smtpUrl.username, smtpUrl.password] = ['gate', mailPassword];
    const keys = { cookieKeys: [randomId('', 43)], tokenKeys: [randomId('', 43)] } as const;
    const service = await start({
      settings: {
        storage: {
          databaseUrl: databaseUrl.href,
          redisUrl: redis.url.replace('//', `//default:${redisPassword}@`),
        },
        mail: { smtpUrl: smtpUrl.href, from: 'gatehouse@example.test' },
        secrets: keys,
      },
    });
    const { issuer, operatorsUrl } = service;
    const secrets = new Map<string, string>([
      ['Redis password', redisPassword],
      ['database password', databasePassword],
      ['mail password', mailPassword],
      ['cookie key', keys.cookieKeys[0] ?? ''],
      ['token key', keys.tokenKeys[0] ?? ''],
    ]);
    const keep = (name: string, value: unknown): string => {
      secrets.set(`${name} ${secrets.size}`, String(value));
      return String(value);
    };
    const { person: account, clients } = await seed(service);
    const { confidential, machine, resourceServer } = clients;
    for (const { secret, ...client } of Object.values(clients)) {
      if (secret === undefined) continue;
      keep('client secret', secret);
      keep('Basic credentials', basic({ ...client, secret }).slice('Basic '.length));
    }
    const wrongSecret = keep('wrong client secret', withChecksum(randomId('gate_cs_', 43)));
    keep('password', account.password);
    const wrongPassword = keep('wrong password', 'seven red forklifts');

    // The user's secrets: all that are typed, clicked, stored in a cookie or sent by mail.
    const person = createPerson(issuer);
    const keepCookies = (path: string): void => {
      for (const cookie of person.cookieHeader(path).split('; ')) {
        const [name = '', value = ''] = cookie.split('=');
        // Skip the value of an interaction's cookie, which is public (in the path): only the
        // cookie's signature is secret.
        if (value.length > 16 && !path.includes(value)) keep(`cookie ${name}`, value);
      }
    };
    const { email } = account;
    await person.submit(await person.get('/login'), { email, password: wrongPassword });
    await person.submit(await person.get('/forgot-password'), { email });
    const mail = await eventually(() => {
      const [first] = mailServer.received;
      if (!first) throw new Error('no mail yet');
      return first;
    });
    const link = new URL(/http\S+\/password\?token=\S+/.exec(mail.text)?.[0] ?? '');
    keep('password link', link.searchParams.get('token'));
    await person.get(link);
    await person.get(`${link.pathname}x${link.search}`);
    const { verifier, parameters } = pkce();
    keep('verifier', verifier);
    keep('challenge', parameters.code_challenge);
    const state = keep('state', 'state-that-only-the-partner-knows');
    const url = authorizationUrl(issuer, confidential, { ...parameters, state });
    const waiting = await person.follow(await person.get(url));
    keepCookies(waiting.url.pathname);
    keep('form token', waiting.forms[0]?.values.find(([name]) => name === 'form_token')?.[1]);
    const redirect = await person.authorize(url, account);
    const code = keep('code', redirect.searchParams.get('code'));
    keepCookies('/profile');
    const keysPage = await person.get('/profile/api-keys');
    const made = await person.follow(await person.submit(keysPage, { name: 'Reports', expires_in_days: '30' }));
    const key = keep('API key', /gate_key_[\w-]+/.exec(made.html)?.[0]);

    // Send each valid request with a secret of the client, and each secret in every wrong place.
    const proof = { code_verifier: verifier };
    const wrong = { ...confidential, secret: wrongSecret };
    const sendEverywhere = async (value: string): Promise<void> => {
      await introspect(issuer, resourceServer, value);
      await introspect(issuer, wrong, value);
      await revokeCurrent(issuer, `${value}x`);
      await postForm(issuer, `/oauth/token/revoke?token=${value}`, { token: value });
      await postForm(issuer, '/oauth/token/refresh', { refresh_token: value });
      await postForm(issuer, `/oauth/token/${value}`, {});
      await postForm(issuer, '/oauth/token', { grant_type: value, scope: value, [value]: value });
      await fetch(`${issuer}/profile/oauth-clients/${value}?code=${value}`, { redirect: 'manual' });
      const headers = { 'content-type': 'application/json', authorization: `Bearer ${value}` };
      await ask(new URL('/oauth/token', issuer), { method: 'POST', headers, body: `{"${value}"` });
      const { port, host } = new URL(issuer);
      const bearer = {
        host,
        authorization: `Bearer ${value}`,
        referer: `${issuer}/?code=${value}`,
      };
      await rawRequest(Number(port), '/profile', { headers: bearer });
      await rawRequest(Number(port), '/x', { headers: { host: `${value}.example` } });
      await rawRequest(Number(port), '/x', { headers: { ...bearer, long: value.repeat(400) } });
      await rawRequest(Number(port), `/${value}`, { headers: bearer, method: 'DELETE' });
      await fetch(`${operatorsUrl}/${value}?${value}`, { method: 'POST', body: value });
      for (const [caller, proxy] of [
        [`Bearer ${value}`, basic(resourceServer)],
        [`Bearer ${value}`, basic(wrong)],
        [`Basic ${value}`, `Bearer ${value}`],
      ] as const) {
        const verified = { authorization: caller, 'x-gatehouse-authorization': proxy };
        await rawRequest(Number(port), '/oauth/verify', { headers: { host, ...verified } });
      }
    };
    await exchangeCode(issuer, wrong, code, proof);
    await exchangeCode(issuer, confidential, code, { code_verifier: pkce().verifier });
    const first = await exchangeCode(issuer, confidential, code, proof);
    keep('access token', first.body.access_token);
    const refreshToken = keep('refresh token', first.body.refresh_token);
    await exchangeCode(issuer, clients.otherConfidential, code, proof);
    const second = await refresh(issuer, confidential, refreshToken);
    await refresh(issuer, confidential, refreshToken, { scope: 'x' });
    const accessToken = keep('access token', second.body.access_token);
    keep('refresh token', second.body.refresh_token);
    const machineToken = keep('machine token', (await clientCredentials(issuer, machine)).body.access_token);
    expect((await introspect(issuer, resourceServer, key)).body.active).to.equal(true);
    const values = [code, accessToken, refreshToken, machineToken, key, wrongSecret, verifier];
    for (const value of values) await sendEverywhere(value);
    await exchangeCode(issuer, confidential, code, proof);

    // Cause an internal error, then stop the stores: the errors of their drivers are logged.
    await service.database.query('ALTER TABLE accounts RENAME TO accounts_elsewhere');
    await createPerson(issuer).post('/login', { email, password: account.password });
    expect((await person.get('/profile/connections')).status).to.equal(500);
    await service.database.query('ALTER TABLE accounts_elsewhere RENAME TO accounts');
    await redis.kill();
    for (const value of values.slice(1, 3)) await sendEverywhere(value);
    await exchangeCode(issuer, confidential, code, proof);
    await fetch(`${operatorsUrl}/readyz`);
    await mailServer.close();
    const visitor = createPerson(issuer);
    await visitor.submit(await visitor.get('/forgot-password'), { email });
    const metrics = await (await fetch(`${operatorsUrl}/metrics`)).text();

    const log = service.logLines.join('');
    expect(log)
      .to.match(/"level":50/)
      .and.include('"status":503')
      .and.include('"status":500')
      .and.include('"route":"/oauth/verify"');
    expect(secrets.size).to.be.greaterThan(25);
    const [logged, exposed] = [log.toLowerCase(), metrics.toLowerCase()];
    for (const [name, secret] of secrets) {
      expect(secret.length, name).to.be.greaterThan(15);
      for (const spelling of spellings(secret).map((text) => text.toLowerCase())) {
        expect(logged.includes(spelling), `${name} is in the log: ${spelling}`).to.equal(false);
        expect(exposed.includes(spelling), `${name} is on /metrics: ${spelling}`).to.equal(false);
      }
    }
  });
});
