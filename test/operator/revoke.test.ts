import { expect } from 'chai';
import { withChecksum } from '../../src/base/random-id.ts';
import { type PartnerTokens, partnerTokens, tokensOf } from '../provider/partner-tokens.ts';
import { refuseChanges, untilOneWaits } from '../support/databases.ts';
import { eventually } from '../support/eventually.ts';
import { authorizationUrl, clientCredentials, exchangeCode, introspect, refresh } from '../support/oauth.ts';
import { isSignedIn } from '../support/person.ts';
import { startRedisServer } from '../support/redis-server.ts';
import { describeOn, postgresServer, redisServer } from '../support/requirements.ts';
import { apiKeyOf, connectMany, seed } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';
import { onPostgresAndRedis, startsOn } from '../support/service.ts';
import { takeRecords } from './operator-suite.ts';
import { operatorFor, type RunOperator, refusalFrom, valueFrom } from './run-operator.ts';

onPostgresAndRedis('operator revoke', (start) => {
  const on = startSeeded({ on: start });
  const run: RunOperator = (...words) => operatorFor(on.service)(...words);
  let grace: PartnerTokens;
  let oscar: PartnerTokens;

  beforeEach(async () => {
    // A test that failed half-way leaves no suspended client and no entry to the next one.
    for (const { id } of [on.clients.confidential, on.clients.machine]) {
      await on.service.clients.resume(id);
    }
    await records();
    grace = partnerTokens(on.issuer, on.seeded);
    oscar = partnerTokens(on.issuer, { ...on.seeded, person: on.seeded.other });
  });

  const isActive = (token: string) => grace.isActive(token);
  /** The service is notified a moment after the command has ended. */
  const expectEnded = (token: string) =>
    eventually(async () => expect(await isActive(token), token.slice(0, 8)).to.equal(false));
  const revoke = (options: string, input?: string) => valueFrom(run, `revoke ${options}`, { input });
  const refused = (options: string, input?: string) => refusalFrom(run, `revoke ${options}`, input);
  const machineToken = async () => tokensOf(await clientCredentials(on.issuer, on.clients.machine)).accessToken;
  const addKey = async () => (await apiKeyOf(on.service, on.seeded.person)).value;
  const isRefreshed = async (token: string) =>
    (await refresh(on.issuer, on.clients.confidential, token)).status === 200;
  /** The operators' entries in the log since the previous call, as action and account. */
  async function records() {
    const rows = await takeRecords(on.service.database);
    return rows.map(({ action, account_id: id }) => `${action} ${nameOf(id)}`);
  }
  const nameOf = (id: string | null) =>
    id === on.seeded.person.accountId ? 'grace' : id === on.seeded.other.accountId ? 'oscar' : 'none';

  const linkOf = async (person: { readonly email: string }): Promise<string> => {
    const { invite_link: link } = await valueFrom(run, `accounts invite ${person.email}`);
    return link.slice(link.indexOf('/password'));
  };

  it('`revoke --account` ends connections, API keys, browser sessions and links after confirmation', async () => {
    const { confidential, otherConfidential } = on.clients;
    const mine = await grace.tokens(confidential);
    const also = await grace.tokens(otherConfidential);
    const theirs = await oscar.tokens(confidential);
    const key = await addKey();
    const [myLink, theirLink] = [await linkOf(on.seeded.person), await linkOf(on.seeded.other)];
    await records();

    const { email } = on.seeded.person;
    expect(await refused(`--account ${email}`)).to.include({ code: 'confirmation_needed' });
    expect(await isActive(mine.accessToken)).to.equal(true);
    expect(await revoke(`--account ${email} --yes`)).to.deep.equal({
      account_id: on.seeded.person.accountId,
      email,
      connections: 2,
      api_keys: 1,
      browser_sessions_ended: true,
    });
    for (const token of [mine.accessToken, also.accessToken, key]) {
      await expectEnded(token);
    }
    expect(await isRefreshed(mine.refreshToken)).to.equal(false);
    await eventually(async () => expect(await isSignedIn(grace.browser)).to.equal(false));
    expect((await grace.browser.open(myLink)).status).to.equal(410);
    expect((await oscar.browser.open(theirLink)).status).to.equal(200);
    expect(await isActive(theirs.accessToken)).to.equal(true);
    expect(await isRefreshed(theirs.refreshToken)).to.equal(true);
    expect((await records()).sort()).to.deep.equal([
      'api_key_revoked grace',
      'disconnected grace',
      'disconnected grace',
      'signed_out_everywhere grace',
    ]);
  });

  it('`revoke --client` ends all tokens at once; a repeat after a failure spares tokens issued after the first run', async () => {
    const { confidential } = on.clients;
    const { accessToken, refreshToken } = await grace.tokens(confidential);
    const theirs = await oscar.tokens(confidential);
    await connectMany(on.service.database, confidential.id, 2_500);
    await records();
    expect((await refused(`--client ${confidential.id}`)).code).to.equal('confirmation_needed');
    // Make the first step fail, as if the command had crashed before.
    const some = "FOR EACH ROW WHEN (new.ended_at IS NOT NULL AND new.account_id > 'many_000200')";
    const accept = await refuseChanges(on.service.database, `UPDATE OF ended_at ON connections ${some}`);
    try {
      expect((await run(`revoke --client ${confidential.id} --yes`)).exitCode).to.equal(1);
      for (const token of [accessToken, theirs.accessToken]) await expectEnded(token);
      for (const token of [refreshToken, theirs.refreshToken]) expect(await isRefreshed(token)).to.equal(false);
      const silent = await grace.browser.follow(
        await grace.browser.get(authorizationUrl(on.issuer, confidential, { prompt: 'none' })),
      );
      expect(silent.location?.searchParams.get('error'), 'approvals of before').to.equal('consent_required');
    } finally {
      await accept();
    }
    expect(await records()).to.deep.equal(['client_tokens_revoked oscar']);
    const again = await grace.tokens(confidential);
    expect(await on.service.connections.countOf(confidential.id), 'without those that have ended').to.equal(1);
    const unmarked = 'SELECT FROM connections WHERE client_id = $1 AND ended_at IS NULL';
    const left = (await on.service.database.query(unmarked, [confidential.id])).length;
    const asked = await refused(`--client ${confidential.id}`);
    expect(asked.message, 'asks about those that are left').to.include(`connections of ${left} people`);
    // Another operator suspends the client meanwhile.
    await on.service.clients.suspend(confidential.id);
    expect(await revoke(`--client ${confidential.id} --yes`)).to.deep.equal({
      client_id: confidential.id,
      connections: left - 1,
      continued: true,
      suspended: true,
    });
    expect(await on.service.connections.countOf(confidential.id)).to.equal(1);
    expect((await on.service.clients.find(confidential.id))?.isSuspended).to.equal(true);
    expect((await records()).filter((record) => !record.startsWith('disconnected'))).to.deep.equal([]);
    await on.service.clients.resume(confidential.id);
    await eventually(async () => expect(await isActive(again.accessToken)).to.equal(true));
    expect(await isRefreshed(again.refreshToken)).to.equal(true);
    await expectEnded(accessToken);

    expect(await revoke(`--client ${confidential.id} --yes`)).to.include({ connections: 1, continued: false });
    await expectEnded(again.accessToken);
    const latest = await grace.tokens(confidential);
    expect(await isActive(latest.accessToken)).to.equal(true);
    // A command that was interrupted hours ago was for another incident.
    await on.service.database.query("UPDATE clients SET ending_since = now() - interval '2 hours' WHERE id = $1", [
      confidential.id,
    ]);
    expect(await revoke(`--client ${confidential.id} --yes`)).to.include({ connections: 1, continued: false });
    await expectEnded(latest.accessToken);
  });

  it('after a second restore of a backup, `revoke --all` also ends what was issued since the first restore', async () => {
    const { database } = on.service;
    const restore = async () => {
      await database.query('UPDATE connections SET generation = 1');
      await database.query('UPDATE lasting_numbers SET first_generation = 1');
      await database.query("UPDATE clients SET generation = 0 WHERE kind = 'machine'");
    };
    const backedUp = await grace.tokens(on.clients.confidential);
    await restore();
    await revoke('--all --yes');
    await revoke('--all --yes');
    await expectEnded(backedUp.accessToken);
    const since = await grace.tokens(on.clients.confidential);
    const sinceOfMachine = await machineToken();
    expect(await isActive(since.accessToken)).to.equal(true);
    expect(await isActive(sinceOfMachine)).to.equal(true);
    // The generations follow the clock in seconds.
    await eventually(async () => {
      await restore();
      await revoke('--all --yes');
      expect(await isActive(since.accessToken)).to.equal(false);
      expect(await isActive(sinceOfMachine)).to.equal(false);
    });
  });

  it('`revoke --client` ends all tokens of a machine client, but none issued afterwards in the same second', async () => {
    const { machine } = on.clients;
    const before = await Promise.all([machineToken(), machineToken()]);
    await on.service.clients.revoke(machine.id);
    const after = await machineToken();
    expect(await Promise.all(before.map(isActive))).to.deep.equal([false, false]);
    expect(await isActive(after)).to.equal(true);

    await records();
    const done = await revoke(`--client ${machine.id} --yes`);
    expect(done).to.deep.equal({ client_id: machine.id, machine_tokens_ended: true });
    await expectEnded(after);
    expect(await isActive(await machineToken())).to.equal(true);
    expect(await records()).to.deep.equal(['client_tokens_revoked none']);
    const server = await refused(`--client ${on.clients.resourceServer.id} --yes`);
    expect(server.code).to.equal('client_without_tokens');
  });

  it('`revoke --token` ends the whole authorization of a token or code, and no other of the same user', async () => {
    const { confidential } = on.clients;
    const kept = await grace.tokens(confidential);
    await records();

    const byAccess = await grace.tokens(confidential);
    const byRefresh = await grace.tokens(confidential);
    const byOld = await grace.tokens(confidential);
    const newer = await refresh(on.issuer, confidential, byOld.refreshToken);
    const newest = await refresh(on.issuer, confidential, tokensOf(newer).refreshToken);
    for (const [value, inactive] of [
      [byAccess.accessToken, byAccess],
      [byRefresh.refreshToken, byRefresh],
      [byOld.refreshToken, tokensOf(newest)],
    ] as const) {
      // Add a line break, as `echo` does.
      const done = await revoke('--token -', `${value}\n`);
      expect(done).to.include({ revoked: true, email: on.seeded.person.email });
      await expectEnded(inactive.accessToken);
      expect(await isRefreshed(inactive.refreshToken)).to.equal(false);
    }
    const code = await grace.code(confidential);
    await revoke(`--token ${code}`);
    expect((await exchangeCode(on.issuer, confidential, code)).status).to.equal(400);
    expect(await isActive(kept.accessToken)).to.equal(true);
    expect(await isRefreshed(kept.refreshToken)).to.equal(true);
    expect(await records()).to.deep.equal(Array(4).fill('tokens_revoked grace'));
  });

  it('`revoke --token` with a machine token or API key ends only that token or key', async () => {
    const [one, two] = [await machineToken(), await machineToken()];
    const [key, other] = [await addKey(), await addKey()];
    await records();
    await revoke(`--token ${one}`);
    await revoke(`--token ${key}`);
    for (const ended of [one, key]) await expectEnded(ended);
    const active = await Promise.all([one, two, key, other].map(isActive));
    expect(active).to.deep.equal([false, true, false, true]);
    expect(await records()).to.deep.equal(['tokens_revoked none', 'api_key_revoked grace']);
  });

  it('`revoke` refuses a malformed or inactive token with a remedy, and neither prints nor records the token', async () => {
    const { confidential } = on.clients;
    const inactive = await grace.tokens(confidential);
    await revoke(`--token ${inactive.accessToken}`);
    await records();
    const secret = String(confidential.secret);
    const refusals = [
      [secret, 'not_a_token', '`clients rotate-secret`'],
      [confidential.id, 'not_a_token', '`revoke --client`'],
      [inactive.accessToken, 'token_not_alive', 'Its authorization ended at '],
      [inactive.refreshToken, 'token_not_alive', '`show`'],
      [withChecksum(`gate_mt_${'x'.repeat(43)}`), 'token_not_alive', '`show`'],
      [inactive.accessToken.slice(0, -1), 'token_malformed', 'Copy the whole value again.'],
    ] as const;
    for (const [value, code, remedy] of refusals) {
      const error = await refused('--token -', value);
      expect(error).to.include({ code });
      expect(error.remedy).to.contain(remedy);
      if (value !== confidential.id) expect(JSON.stringify(error)).not.to.contain(value);
    }
    expect(await records()).to.deep.equal([]);
    const none = await valueFrom(run, 'revoke', { exitCode: 2 });
    expect(none.error.message).to.contain('--account, --client, --token or --all');
  });
});

describeOn([postgresServer, redisServer], 'operator revoke while Redis is unavailable', () => {
  const start = startsOn('postgres+redis');

  it('without Redis, `revoke --account` and `--client` work, `--token` changes nothing, and `show` reports gaps', async () => {
    const redis = await startRedisServer();
    const settings = { storage: { redisUrl: redis.url } };
    const service = await start({ settings });
    const seeded = await seed(service);
    const { confidential, otherConfidential, resourceServer } = seeded.clients;
    const { person, other } = seeded;
    const partners = [person, other].map((one) => partnerTokens(service.issuer, { ...seeded, person: one }));
    const [mine, theirs] = await Promise.all(partners.map((one) => one.tokens(confidential)));
    const kept = await partners[1]?.tokens(otherConfidential);
    const run = operatorFor(service);
    await redis.stop();
    const error = await refusalFrom(run, `revoke --token ${mine?.accessToken}`);
    expect(error).to.include({ code: 'storage_unavailable' });
    expect(error.message).to.match(/^Redis does not answer/);
    const text = `${mine?.accessToken} of ${person.email}, and a secret of a store: aB3defghijklmnopqrstuv`;
    const shown = await valueFrom(run, 'show -', { input: text, exitCode: 1 });
    const states = shown.map(({ state }: { state: string }) => state);
    expect(states).to.deep.equal(['not_answered', 'active', 'not_answered']);
    expect(shown[2]).to.include({ kind: 'authorization', value: '…stuv' });
    const recorded = "SELECT action FROM activity WHERE actor = 'operator' AND account_id = $1";
    expect(await service.database.query(recorded, [person.accountId])).to.deep.equal([]);

    await run(`revoke --account ${person.email} --yes`);
    expect(await service.connections.countOf(confidential.id)).to.equal(1);
    await run(`revoke --client ${confidential.id} --yes`);
    expect(await service.connections.countOf(confidential.id)).to.equal(0);
    await redis.restart();
    for (const tokens of [mine, theirs]) {
      const token = String(tokens?.accessToken);
      await eventually(async () => {
        const { body } = await introspect(service.issuer, resourceServer, token);
        expect(body).to.deep.equal({ active: false });
      });
    }
    const { body } = await introspect(service.issuer, resourceServer, String(kept?.accessToken));
    expect(body, 'a token that was not revoked').to.include({ active: true });
  });
});

describeOn([postgresServer], 'operator revoke, while people approve the client again', () => {
  const on = startSeeded({ on: 'postgres' });

  it('`revoke --client` ends all earlier connections, even if a user approves the client again meanwhile', async () => {
    const { database, connections } = on.service;
    const { id } = on.clients.confidential;
    await connectMany(database, id, 1_001);
    const { revoking } = await database.transaction(async (tx) => {
      await tx.query(
        `UPDATE connections SET client_generation = 1, generation = generation + 1
          WHERE client_id = $1 AND account_id = 'many_000500'`,
        [id],
      );
      const revoking = operatorFor(on.service)(`revoke --client ${id} --yes`);
      await untilOneWaits(database);
      return { revoking };
    });
    expect((await revoking).exitCode).to.equal(0);
    expect(await connections.countOf(id)).to.equal(1);
    expect(await connections.endOf('many_000500', id)).to.equal(undefined);
  });
});
