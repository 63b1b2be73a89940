/** `POST /oauth/revoke` (RFC 7009): how standard client libraries end an authorization. */
import { expect } from 'chai';
import { withChecksum } from '../../src/base/random-id.ts';
import { listenForChanges } from '../../src/storage/change-feed.ts';
import { eventually } from '../support/eventually.ts';
import {
  type Answer,
  ask,
  clientCredentials,
  exchangeCode,
  postForm,
  refresh,
  revokeCurrent,
  type TestClient,
} from '../support/oauth.ts';
import { describeOn, postgresServer } from '../support/requirements.ts';
import { apiKeyOf } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';
import { TIMEOUT_FACTOR } from '../support/timeout-factor.ts';
import { type Tokens, tokensOf } from './partner-tokens.ts';
import { expectRefusal } from './refusals.ts';

/** Refused requests of an address before further ones get 429. */
const MAX_FAILURES = 20;

describe('token revocation', () => {
  const on = startSeeded({ settings: { limits: { clientFailuresPerAddress: MAX_FAILURES } } });

  const revoke = (
    token: string | undefined,
    client: TestClient | undefined = on.clients.confidential,
    more: Record<string, string> = {},
  ): Promise<Answer> => postForm(on.issuer, '/oauth/revoke', { token, ...more }, { client });

  const expectDone = ({ status, text, headers }: Answer): void => {
    expect(status, text).to.equal(200);
    // simple-oauth2 fails on an answer that is not JSON, other libraries on an empty body.
    expect(text).to.equal('{}');
    expect(headers.get('content-type')).to.equal('application/json; charset=utf-8');
  };

  async function isUsable(tokens: Tokens): Promise<boolean> {
    const isActive = await on.partner.isActive(tokens.accessToken);
    const { status } = await refresh(on.issuer, on.clients.confidential, tokens.refreshToken);
    expect(status, 'access and refresh token end together').to.equal(isActive ? 200 : 400);
    return isActive;
  }

  it('a revoked or unknown token is answered with 200 (RFC 7009 §2.2)', async () => {
    const { accessToken } = await on.partner.tokens(on.clients.confidential);
    expectDone(await revoke(accessToken));
    const { value: key } = await apiKeyOf(on.service, on.seeded.person);
    for (const token of [accessToken, `gate_at_${'x'.repeat(65)}`, 'x', 'a.b.c', '☃', key]) {
      expectDone(await revoke(token));
    }
    expect(await on.partner.isActive(key), 'users revoke API keys on their page').to.equal(true);
  });

  it('the revocation of a made-up machine token removes only machine clients from caches', async () => {
    const { confidential, machine } = on.clients;
    const madeUp = withChecksum(`gate_mt_${'y'.repeat(43)}`);
    const changes = await listenForChanges(on.service.database, TIMEOUT_FACTOR);
    try {
      const heard: string[] = [];
      changes.onChange((topic, key) => void (topic === 'clients' && heard.push(String(key))));
      expectDone(await revoke(madeUp, confidential));
      expectDone(await revoke(madeUp, machine));
      await eventually(async () => expect(heard).to.include(machine.id));
      expect(heard).not.to.include(confidential.id);
    } finally {
      await changes.close();
    }
  });

  it('a client cannot revoke the token of another client', async () => {
    const tokens = await on.partner.tokens(on.clients.confidential);
    const machine = tokensOf(await clientCredentials(on.issuer, on.clients.machine));
    const attempts: [string, TestClient][] = [
      [tokens.accessToken, on.clients.otherConfidential],
      [tokens.refreshToken, on.clients.public],
      [tokens.accessToken, on.clients.resourceServer],
      [machine.accessToken, on.clients.confidential],
    ];
    for (const [token, client] of attempts) {
      expectRefusal(await revoke(token, client), 400, 'invalid_grant');
    }
    expect(await isUsable(tokens)).to.equal(true);
    expect(await on.partner.isActive(machine.accessToken)).to.equal(true);
  });

  it('a revocation request without a token, or with a repeated parameter, revokes nothing', async () => {
    const tokens = await on.partner.tokens(on.clients.confidential);
    const url = new URL('/oauth/revoke', on.issuer);
    for (const nothing of [undefined, '']) {
      expectRefusal(await revoke(nothing), 400, 'invalid_request');
    }
    // RFC 6749 §5.2: in the description, text of the request is printable ASCII, without quotes.
    const name = encodeURIComponent('naïve"\n');
    const hostile = new URLSearchParams(`${name}=1&${name}=2`);
    const answer = await ask(url, { method: 'POST', body: hostile });
    expectRefusal(answer, 400, 'invalid_request', "na?ve'? must not be sent twice");
    expect(await isUsable(tokens)).to.equal(true);
  });

  /** Returns and removes the revocations that the user's activity log contains. */
  async function recorded() {
    const rows = await on.service.database.query<{
      actor: string;
      details: object;
      address: string;
    }>(
      `WITH taken AS (DELETE FROM activity WHERE action = 'tokens_revoked' AND account_id = $1
          RETURNING *)
        SELECT actor, details, address FROM taken ORDER BY id`,
      [on.seeded.person.accountId],
    );
    return rows.map(({ actor, details, address }) => {
      expect(address).to.match(/127\.0\.0\.1$|^::1$/);
      return { actor, ...details };
    });
  }

  async function record(actor: string, cause: string) {
    const { id } = on.clients.confidential;
    const client = await on.service.clients.find(id);
    return { actor, cause, client_id: id, client_name: client?.name };
  }

  it('a revocation is recorded once, before the answer, with the client as actor and the address of the request', async () => {
    const { confidential: client } = on.clients;
    await recorded();
    const { accessToken } = await on.partner.tokens(client);
    expect((await revokeCurrent(on.issuer, accessToken)).status).to.equal(204);
    expect((await revokeCurrent(on.issuer, accessToken)).status).to.equal(401);
    const { refreshToken: token } = await on.partner.tokens(client);
    const { status } = await postForm(on.issuer, '/oauth/revoke', { token }, { client });
    expect(status).to.equal(200);
    const expected = await record('client', 'client_revoked');
    expect(await recorded()).to.deep.equal([expected, expected]);
  });

  it('the reuse of a token is recorded once, with the service as actor', async () => {
    const { confidential } = on.clients;
    const { issuer } = on;
    await recorded();
    const { refreshToken: oldest } = await on.partner.tokens(confidential);
    const next = tokensOf(await refresh(issuer, confidential, oldest)).refreshToken;
    for (const token of [next, oldest, oldest]) await refresh(issuer, confidential, token);
    expect(await recorded()).to.deep.equal([await record('service', 'refresh_token_replayed')]);
    const code = await on.partner.code(confidential);
    await Promise.all([1, 2, 3].map(() => exchangeCode(issuer, confidential, code)));
    expect(await recorded()).to.deep.equal([await record('service', 'code_replayed')]);
  });

  it('too many unknown tokens of a public or machine client get 429, but its own ended tokens do not count', async () => {
    const { confidential, machine, public: publicClient } = on.clients;
    const { accessToken } = await on.partner.tokens(confidential);
    const machineToken = tokensOf(await clientCredentials(on.issuer, machine)).accessToken;
    const own = (await on.partner.tokens(publicClient)).accessToken;
    expectDone(await revoke(accessToken));
    expectDone(await revoke(machineToken, machine));
    for (let count = 0; count < MAX_FAILURES; count += 1) expectDone(await revoke(own, publicClient));
    // Ended values of other clients are unknown to this one.
    const madeUp = [withChecksum(`gate_mt_${'x'.repeat(43)}`), withChecksum(`gate_rt_${'x'.repeat(65)}0`)];
    const unknown = [...madeUp, accessToken, machineToken];
    const statuses = new Set<number>();
    for (let count = 0; count <= MAX_FAILURES; count += 1) {
      statuses.add((await revoke(unknown[count % unknown.length], publicClient)).status);
    }
    expect([...statuses]).to.deep.equal([200, 429]);
    // In Redis each unknown machine token of a machine client is recorded as ended; in the database nothing is.
    const { redisUrl } = on.service.settings.storage;
    expect((await revoke(madeUp[0], machine)).status).to.equal(redisUrl === undefined ? 200 : 429);
    expectDone(await revoke(machineToken, machine));
    // Nothing is recorded for a confidential client, so it may send any number of expired tokens.
    expectDone(await revoke(unknown[0]));
    expectDone(await revoke(accessToken));
  });
});

describeOn([postgresServer], 'token revocation with the tokens in PostgreSQL', () => {
  const on = startSeeded({ on: 'postgres', settings: { limits: { clientFailuresPerAddress: 2 } } });

  it('a machine client may revoke its own ended tokens any number of times, and none of them is stored', async () => {
    const { machine } = on.clients;
    const token = tokensOf(await clientCredentials(on.issuer, machine)).accessToken;
    for (let count = 0; count < 5; count += 1) {
      const { status, text } = await postForm(on.issuer, '/oauth/revoke', { token }, { client: machine });
      expect(status, text).to.equal(200);
    }
    expect(await on.service.database.query('SELECT 1 FROM ended_machine_tokens')).to.deep.equal([]);
  });
});
