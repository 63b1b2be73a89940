/** The activity log records why an authorization ended, before the request is answered. */
import { expect } from 'chai';
import { exchangeCode, postForm, refresh, revokeCurrent } from '../support/oauth.ts';
import { startSeeded } from '../support/seeded.ts';
import { tokensOf } from './partner-tokens.ts';

describe('the record of a revocation', () => {
  const on = startSeeded();

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

  it('a revocation is recorded once, with the client as actor and the address of the request', async () => {
    const { confidential: client } = on.clients;
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
    const { refreshToken: oldest } = await on.partner.tokens(confidential);
    const next = tokensOf(await refresh(issuer, confidential, oldest)).refreshToken;
    for (const token of [next, oldest, oldest]) await refresh(issuer, confidential, token);
    expect(await recorded()).to.deep.equal([await record('service', 'refresh_token_replayed')]);
    const code = await on.partner.code(confidential);
    await Promise.all([1, 2, 3].map(() => exchangeCode(issuer, confidential, code)));
    expect(await recorded()).to.deep.equal([await record('service', 'code_replayed')]);
  });
});
