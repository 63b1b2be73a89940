/** `POST /oauth/revoke` (RFC 7009): how standard client libraries end an authorization. */
import { expect } from 'chai';
import {
  type Answer,
  ask,
  clientCredentials,
  postForm,
  refresh,
  type TestClient,
} from '../support/oauth.ts';
import { startSeeded } from '../support/seeded.ts';
import { type Tokens, tokensOf } from './partner-tokens.ts';
import { expectRefusal } from './refusals.ts';

describe('token revocation', () => {
  const on = startSeeded();

  const revoke = (
    token: string | undefined,
    client: TestClient | undefined = on.clients.confidential,
    more: Record<string, string> = {},
  ): Promise<Answer> => postForm(on.issuer, '/oauth/revoke', { token, ...more }, { client });

  const expectDone = ({ status, text, headers }: Answer): void => {
    expect(status, text).to.equal(200);
    // simple-oauth2 fails on an answer that is no JSON, others on JSON that is empty.
    expect(text).to.equal('{}');
    expect(headers.get('content-type')).to.equal('application/json; charset=utf-8');
  };

  async function isAlive(tokens: Tokens, client = on.clients.confidential): Promise<boolean> {
    const isActive = await on.partner.isActive(tokens.accessToken);
    const { status } = await refresh(on.issuer, client, tokens.refreshToken);
    expect(status, 'access and refresh tokens live and die together').to.equal(
      isActive ? 200 : 400,
    );
    return isActive;
  }

  it('a public client names itself', async () => {
    const tokens = await on.partner.tokens(on.clients.public);
    expectDone(await revoke(tokens.refreshToken, on.clients.public));
    expect(await isAlive(tokens, on.clients.public)).to.equal(false);
  });

  it('a token that is already dead, or never was, is answered as done (RFC 7009 §2.2)', async () => {
    const { accessToken } = await on.partner.tokens(on.clients.confidential);
    expectDone(await revoke(accessToken));
    for (const token of [accessToken, `gate_at_${'x'.repeat(65)}`, 'x', 'a.b.c', '☃']) {
      expectDone(await revoke(token));
    }
  });

  it('another client cannot revoke it', async () => {
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
    expect(await isAlive(tokens)).to.equal(true);
    expect(await on.partner.isActive(machine.accessToken)).to.equal(true);
  });

  it('a request without a token, or with something twice, revokes nothing', async () => {
    const tokens = await on.partner.tokens(on.clients.confidential);
    const url = new URL('/oauth/revoke', on.issuer);
    for (const nothing of [undefined, '']) {
      expectRefusal(await revoke(nothing), 400, 'invalid_request');
    }
    // RFC 6749 §5.2: what is repeated of a request is printable ASCII, without quotes.
    const name = encodeURIComponent('naïve"\n');
    const hostile = new URLSearchParams(`${name}=1&${name}=2`);
    const told = await ask(url, { method: 'POST', body: hostile });
    expectRefusal(told, 400, 'invalid_request', "na?ve'? must not be sent twice");
    expect(await isAlive(tokens)).to.equal(true);
  });
});
