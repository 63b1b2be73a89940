/** No scopes exist: `scope` may be absent or empty, any other value is `invalid_scope`. */
import { expect } from 'chai';
import {
  type Answer,
  authorizationUrl,
  clientCredentials,
  exchangeCode,
  postForm,
  refresh,
  type TestClient,
} from '../support/oauth.ts';
import { createPerson } from '../support/person.ts';
import { startSeeded } from '../support/seeded.ts';
import { answerIn, outcomeOf } from './authorization-outcome.ts';
import { expectRefusal } from './refusals.ts';

const CAUSES = ['no scopes exist here: leave scope out', 'scope contains invalid characters'];
const SOME_SCOPES = ['foo', 'openid', 'offline_access', 'openid foo', 'read write', ' ', 'a"b'];

describe('no scopes', () => {
  const on = startSeeded();
  let client: TestClient;

  before(() => {
    client = on.clients.confidential;
  });

  function expectInvalidScope(answer: Answer): void {
    expectRefusal(answer, 400, 'invalid_scope');
    expect(answer.body.error_description).to.be.oneOf(CAUSES);
  }

  /** Asserts that the answer has no members but those of RFC 6749 §5.1 without scope, and `more`. */
  function expectTokens({ status, body, text }: Answer, ...more: string[]): void {
    expect(status, text).to.equal(200);
    expect(body).to.have.all.keys('access_token', 'expires_in', 'token_type', ...more);
  }

  it('an authorization request with a scope is refused before any page is shown; an empty one counts as none', async () => {
    for (const scope of SOME_SCOPES) {
      const url = authorizationUrl(on.issuer, client, { scope });
      const { error, error_description: description } = answerIn(await createPerson(on.issuer).get(url));
      expect(error, scope).to.equal('invalid_scope');
      expect(description).to.be.oneOf(CAUSES);
    }
    const url = authorizationUrl(on.issuer, client, { scope: '' });
    await on.partner.browser.signIn(on.seeded.person);
    expect(await outcomeOf(on.partner.browser, url)).to.equal('consent');
    expect(answerIn(await on.partner.browser.get(`${url}&scope=`)).error, 'even if empty').to.equal('invalid_request');
  });

  it('a token request with a scope is refused and uses nothing up; an empty scope counts as none', async () => {
    const code = await on.partner.code(client);
    const { refreshToken } = await on.partner.tokens(client);
    const grants: readonly (readonly [(parameters: { scope: string }) => Promise<Answer>, ...more: string[]])[] = [
      [(parameters) => exchangeCode(on.issuer, client, code, parameters), 'refresh_token'],
      [(parameters) => refresh(on.issuer, client, refreshToken, parameters), 'refresh_token'],
      [(parameters) => clientCredentials(on.issuer, on.clients.machine, parameters)],
    ];
    for (const [send, ...more] of grants) {
      for (const scope of SOME_SCOPES) expectInvalidScope(await send({ scope }));
      expectTokens(await send({ scope: '' }), ...more);
    }
  });

  it('the parameters scope[a] and scope[] are ignored as unknown', async () => {
    const odd = { 'scope[a]': 'b', 'scope[]': 'b', 'scope.a': 'b' };
    const code = await on.partner.code(client, odd);
    expectTokens(await exchangeCode(on.issuer, client, code, odd), 'refresh_token');
    const form = { grant_type: 'client_credentials', ...odd };
    const { machine } = on.clients;
    expectTokens(await postForm(on.issuer, '/oauth/token', form, { client: machine }));
  });
});
