/** Values that were found in public are ended, and the people concerned are mailed. */
import { expect } from 'chai';
import { withChecksum } from '../../src/base/random-id.ts';
import { textsFor } from '../../src/texts/texts.ts';
import { isSecretValid, textOf } from '../pages/client-owner.ts';
import { signedIn } from '../pages/signed-in-person.ts';
import { eventually } from '../support/eventually.ts';
import { startsWithMail } from '../support/mail-server.ts';
import { counted, scrape } from '../support/metrics.ts';
import { clientCredentials, exchangeCode, refresh } from '../support/oauth.ts';
import { recordedProblems } from '../support/recorded-problems.ts';
import { addTestClient, apiKeyOf } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';
import { LEAK_SENDERS, type Reported, reportLeaks } from './leak-reports.ts';

const DAY = 86_400;
const SCANNER = { url: 'https://code.example/acme/app/blob/main/.env#L3', source: 'scan' };

describe('a token, key or secret that is reported as leaked is revoked, and its owner gets mail', () => {
  const mail = startsWithMail();
  const on = startSeeded({ on: mail.start, clock: true, settings: { senders: LEAK_SENDERS } });

  const report = async (...entries: (string | Reported)[]) => {
    const list = entries.map((entry) => (typeof entry === 'string' ? { token: entry, ...SCANNER } : entry));
    const answer = await reportLeaks(on.service, list);
    expect(answer.status, answer.text).to.equal(200);
    return answer.body;
  };
  const lastActivity = async (accountId: string, limit = 1) =>
    (await on.service.activity.of(accountId, { limit })).map(({ action, actor, details }) => ({
      action,
      actor,
      ...details,
    }));
  /** Returns the mails about leaks to this address that contain the text. */
  const mailsTo = (email: string, about: string): string[] =>
    mail.received
      .filter(({ to, text }) => to.includes(email) && text.includes(about))
      .map(({ text }) => text)
      .filter((text) => text.includes('found in public'));
  const mailTo = async (email: string, about: string): Promise<string> => {
    await eventually(() => expect(mailsTo(email, about)).to.have.length(1));
    return mailsTo(email, about)[0] ?? '';
  };
  const addKey = (name: string) => apiKeyOf(on.service, on.seeded.person, name);
  const ownedClient = (name: string) => addTestClient(on.service, name, { ownerAccountId: on.seeded.other.accountId });

  it('a leaked access token, refresh token or code ends its authorization, and the user gets one mail for each', async () => {
    const { confidential: client } = on.clients;
    const { email, accountId } = on.seeded.person;
    const byAccess = await on.partner.tokens(client);
    const byRefresh = await on.partner.tokens(client);
    const code = await on.partner.code(client);
    const untouched = await on.partner.tokens(client);
    for (const [place, token] of [byAccess.accessToken, byRefresh.refreshToken, code].entries()) {
      const entry = { ...SCANNER, token, source: `place ${place}` };
      expect(await report(entry)).to.deep.equal({ received: 1, malformed: [] });
      const text = await mailTo(email, `place ${place}, https[:]//code[.]example/`);
      expect(text).to.include('Route Planner').and.not.include(token.slice(-6));
      expect(await lastActivity(accountId)).to.deep.equal([
        {
          action: 'tokens_revoked',
          actor: 'service',
          cause: 'leaked',
          client_id: client.id,
          client_name: 'Route Planner',
          found_at: `place ${place}, ${SCANNER.url}`,
          reported_by: 'scanner',
        },
      ]);
    }
    expect(await on.partner.isActive(byAccess.accessToken)).to.equal(false);
    for (const { refreshToken } of [byAccess, byRefresh]) {
      expect((await refresh(on.issuer, client, refreshToken)).body.error).to.equal('invalid_grant');
    }
    expect((await exchangeCode(on.issuer, client, code)).body.error).to.equal('invalid_grant');
    expect(await on.partner.isActive(untouched.accessToken)).to.equal(true);
  });

  it('two leaked tokens of one authorization, or values that are reported twice, cause one mail and one log entry', async () => {
    const { email, accountId } = on.seeded.person;
    const { accessToken, refreshToken } = await on.partner.tokens(on.clients.confidential);
    const from = (token: string) => ({ token, source: 'repeated' });
    await report(from(accessToken), from(refreshToken), from(accessToken));
    await Promise.all([report(from(refreshToken)), report(from(accessToken))]);
    const { value } = await addKey('Once');
    await Promise.all([report(from(value)), report(from(value))]);
    // Mails are sent one after another: this one is the last.
    await report((await addKey('Fence')).value);
    await mailTo(email, 'Fence');
    expect(mailsTo(email, 'repeated')).to.have.length(2);
    const recorded = await lastActivity(accountId, 3);
    expect(recorded.filter((entry) => 'cause' in entry && entry.cause === 'leaked')).to.have.length(2);
  });

  it('a leaked API key is revoked, and its user gets a mail', async () => {
    const { email, accountId } = on.seeded.person;
    const { value, lastFour } = await addKey('Nightly report');
    expect(await on.partner.isActive(value)).to.equal(true);
    await report({ ...SCANNER, token: value, source: '' });
    expect(await on.partner.isActive(value)).to.equal(false);
    expect(await mailTo(email, 'Nightly report')).to.include(`…${lastFour}`);
    expect((await lastActivity(accountId))[0]).to.include({
      action: 'api_key_revoked',
      cause: 'leaked',
      last_four: lastFour,
      found_at: SCANNER.url,
    });
  });

  it('a leaked machine access token is revoked; if its client has no owner, only the operator is notified', async () => {
    const { machine } = on.clients;
    const token = String((await clientCredentials(on.issuer, machine)).body.access_token);
    await report(token);
    expect(await on.partner.isActive(token)).to.equal(false);
    expect(counted(await scrape(on.service), 'gatehouse_leaked_values_total')).to.include({
      '{kind="machine_token"}': 1,
    });
    const lines = on.service.logLines.filter((line) => line.includes('found in public'));
    expect(lines.at(-1)).to.include('"kind":"machine_token"').and.include(machine.id);
    expect(mail.received.filter(({ text }) => text.includes('Night Sync'))).to.deep.equal([]);
  });

  it('a leaked client secret is refused after the grace period, even if it is the only one, and the owner sees why', async () => {
    const { email, accountId } = on.seeded.other;
    const client = await ownedClient('Only Secret');
    await report(client.secret ?? '');
    const until = new Date(on.clock.clock() + DAY * 1000).toISOString();
    expect(await mailTo(email, 'Only Secret')).to.include(textsFor('en').moment({ iso: until }));
    expect((await lastActivity(accountId))[0]).to.include({
      action: 'client_changed',
      cause: 'leaked',
      last_four: client.secret?.slice(-4),
    });
    expect(await isSecretValid(on.issuer, client)).to.equal(true);
    on.clock.advance(DAY - 1);
    expect(await isSecretValid(on.issuer, client)).to.equal(true);
    on.clock.advance(1);
    const refused = await exchangeCode(on.issuer, client, withChecksum(`gate_ac_${'x'.repeat(65)}`));
    expect(refused.status).to.equal(401);
    expect(refused.text).not.to.include('public');
    const [problem] = await recordedProblems(on.service, client.id);
    expect(problem?.cause).to.equal('client secret was found in public and is no longer accepted');
    const owner = await signedIn(on.service, on.seeded.other);
    const page = `/profile/oauth-clients/${client.id}`;
    expect(textOf((await owner.get(`${page}/secrets`)).html)).to.include('found in public Refused since');
    // A new secret works, and the leaked one can be removed then, but not the new one.
    const { secret } = await on.service.clients.addSecret(client.id);
    expect(await isSecretValid(on.issuer, { ...client, secret })).to.equal(true);
    const [leaked, fresh] = (await on.service.clients.find(client.id))?.secrets ?? [];
    const failed = await on.service.clients.removeSecret(client.id, fresh?.id ?? '').catch((e) => e);
    expect(failed.code).to.equal('secret_last');
    await on.service.clients.removeSecret(client.id, leaked?.id ?? '');
    expect(await isSecretValid(on.issuer, { ...client, secret })).to.equal(true);
  });

  it('a secret whose grace period has ended stays refused, even if the grace period is made longer', async () => {
    const { accountId } = on.seeded.other;
    const client = await ownedClient('Final Secret');
    await report(client.secret ?? '');
    on.clock.advance(DAY - 60);
    await on.service.clean();
    expect(await isSecretValid(on.issuer, client)).to.equal(true);
    on.clock.advance(60);
    await on.service.clean();
    expect((await lastActivity(accountId))[0]).to.include({
      action: 'client_secret_removed',
      actor: 'service',
      cause: 'leaked',
    });
    // A longer grace period no longer changes it.
    const { settings } = on.service;
    await on.service.apply({ ...settings, leaks: { secretGraceSeconds: 9 * DAY } });
    expect(await isSecretValid(on.issuer, client)).to.equal(false);
    await on.service.apply(settings);
    expect((await on.service.clients.findClientIdBySecret(client.secret ?? '')) ?? '').to.equal(client.id);
  });

  it('a changed grace period applies to leaked secrets that are still accepted, not to those already refused', async () => {
    const [early, late] = [await ownedClient('Early Leak'), await ownedClient('Late Leak')];
    const { settings } = on.service;
    await report(early.secret ?? '');
    on.clock.advance(DAY / 2);
    await report(late.secret ?? '');
    on.clock.advance(DAY / 2);
    // The first one is refused, and no cleaning job has run since.
    await on.service.apply({ ...settings, leaks: { secretGraceSeconds: 2 * DAY } });
    expect(await isSecretValid(on.issuer, early)).to.equal(false);
    on.clock.advance(DAY / 2);
    expect(await isSecretValid(on.issuer, late)).to.equal(true);
    await on.service.apply({ ...settings, leaks: { secretGraceSeconds: 60 } });
    expect(await isSecretValid(on.issuer, late)).to.equal(false);
    await on.service.apply(settings);
  });

  it('a leak of a machine client secret revokes only the tokens issued with it; a removal revokes no token', async () => {
    const machine = await addTestClient(on.service, 'Public Machine', { kind: 'machine' });
    const { secret } = await on.service.clients.addSecret(machine.id);
    const tokenBy = async (one = machine.secret) => {
      const { body } = await clientCredentials(on.issuer, { ...machine, secret: one ?? '' });
      return String(body.access_token);
    };
    const [leaked, other] = [await tokenBy(), await tokenBy(secret)];
    await report(machine.secret ?? '');
    expect([await on.partner.isActive(leaked), await on.partner.isActive(other)]).to.deep.equal([false, true]);
    // A rotation removes the row of the leaked secret, and an ordinary removal ends no token.
    const third = await on.service.clients.addSecret(machine.id);
    const kept = third.client.secrets.find(({ lastFour }) => lastFour === secret.slice(-4));
    await on.service.clients.removeSecret(machine.id, kept?.id ?? '');
    expect((await on.service.clients.find(machine.id))?.secrets).to.have.length(1);
    expect([await on.partner.isActive(leaked), await on.partner.isActive(other)]).to.deep.equal([false, true]);
  });

  it('a leaked secret of a machine client is refused at once, and so is any leaked secret if the grace period is 0s', async () => {
    const { accountId } = on.seeded.other;
    const machine = await addTestClient(on.service, 'Public Machine', {
      kind: 'machine',
      ownerAccountId: accountId,
    });
    expect((await clientCredentials(on.issuer, machine)).status).to.equal(200);
    await report(machine.secret ?? '');
    expect((await clientCredentials(on.issuer, machine)).status).to.equal(401);
    const now = textsFor('en').moment({ iso: new Date(on.clock.clock()).toISOString() });
    expect(await mailTo(on.seeded.other.email, 'Public Machine')).to.include(`refused from ${now}`);
    const recorded = await lastActivity(accountId, 2);
    expect(recorded.map(({ action }) => action)).to.deep.equal(['client_secret_removed', 'client_changed']);
    const { settings } = on.service;
    await on.service.apply({ ...settings, leaks: { secretGraceSeconds: 0 } });
    const client = await ownedClient('No Grace');
    await report(client.secret ?? '');
    expect(await isSecretValid(on.issuer, client)).to.equal(false);
    await on.service.apply(settings);
    const { secret } = await on.service.clients.addSecret(machine.id);
    expect((await clientCredentials(on.issuer, { ...machine, secret })).status).to.equal(200);
  });

  it('a leaked secret can be replaced even if the client already has two secrets', async () => {
    const client = await ownedClient('Two Secrets');
    on.clock.advance(1);
    const { secret: second } = await on.service.clients.addSecret(client.id);
    const full = await on.service.clients.addSecret(client.id).catch((error) => error);
    expect(full.code).to.equal('secrets_full');
    await report(client.secret ?? '');
    on.clock.advance(1);
    const { secret: third } = await on.service.clients.addSecret(client.id);
    for (const secret of [client.secret, second, third]) {
      expect(await isSecretValid(on.issuer, { ...client, ...(secret && { secret }) })).to.equal(true);
    }
    on.clock.advance(DAY);
    expect(await isSecretValid(on.issuer, client)).to.equal(false);
    expect(await isSecretValid(on.issuer, { ...client, secret: third })).to.equal(true);
  });

  it('reporting a made-up, expired or unknown value as leaked is answered like any other report, but revokes nothing', async () => {
    const { confidential: client } = on.clients;
    const { accessToken, refreshToken } = await on.partner.tokens(client);
    const id = accessToken.slice(8, 30);
    const forged = withChecksum(`gate_at_${id}${'x'.repeat(67)}`);
    const expected = await report((await on.partner.tokens(client)).accessToken);
    for (const token of [
      forged,
      withChecksum(`gate_rt_${id}${'x'.repeat(44)}`),
      withChecksum(`gate_mt_${'x'.repeat(43)}`),
      withChecksum(`gate_key_${'x'.repeat(43)}`),
      withChecksum(`gate_cs_${'x'.repeat(43)}`),
    ]) {
      expect(await report(token), token).to.deep.equal(expected);
    }
    expect(await on.partner.isActive(accessToken)).to.equal(true);
    on.clock.advance(3_600);
    expect(await report(accessToken)).to.deep.equal(expected);
    expect((await refresh(on.issuer, client, refreshToken)).status).to.equal(200);
  });

  it('the leaked secret of a suspended owner is refused after the grace period, and the owner gets no mail', async () => {
    const client = await ownedClient('Suspended Owner');
    const { accountId, email } = on.seeded.other;
    await on.service.accounts.suspend(accountId);
    await report(client.secret ?? '');
    const stored = await on.service.clients.find(client.id);
    expect(stored?.secrets[0]?.leakedAt).to.be.instanceOf(Date);
    await on.service.accounts.resume(accountId);
    await on.service.clients.transfer(client.id, undefined);
    on.clock.advance(DAY);
    await on.service.clean();
    expect(await isSecretValid(on.issuer, client)).to.equal(false);
    expect(mailsTo(email, 'Suspended Owner')).to.deep.equal([]);
  });

  it('the place of a leak is stored and mailed without invisible characters and without the leaked value', async () => {
    const { email, accountId } = on.seeded.person;
    const { value } = await addKey('Odd place');
    const url = `https://evil.example/\u202e\u0000?k=${value.slice(0, 20)}\u200b${value.slice(20)}&${'x'.repeat(999)}`;
    await report({ token: value, url, source: 'a\r\nSubject: b' });
    const text = await mailTo(email, 'Odd place');
    expect(text).to.include('a Subject[:] b, https[:]//evil[.]example/?k=gate_key_…');
    expect(text).not.to.include('evil.example');
    expect(JSON.stringify(await lastActivity(accountId)).length).to.be.below(600);
    const log = on.service.logLines.join('\n');
    expect(log).not.to.include(value).and.not.include(value.slice(20));
    const rows = await on.service.database.query<{ text: string }>('SELECT details::text AS text FROM activity');
    expect(rows.map(({ text: one }) => one).join()).not.to.include(value.slice(20));
  });
});
