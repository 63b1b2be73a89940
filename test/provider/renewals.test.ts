/** A client that was robbed is renewed: its thief loses everything, and no person has to approve it again. */
import { expect } from 'chai';
import { LEAK_SENDERS, reportLeaks } from '../authorizations/leak-reports.ts';
import { eventually } from '../support/eventually.ts';
import {
  authorizationUrl,
  clientCredentials,
  exchangeCode,
  refresh,
  revokeCurrent,
  type TestClient,
} from '../support/oauth.ts';
import { recordedProblems } from '../support/recorded-problems.ts';
import { addTestClient } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';
import { onPostgresAndRedis } from '../support/service.ts';
import { granted, type Tokens, tokensOf } from './partner-tokens.ts';
import { expectRefusal } from './refusals.ts';

const DAY = 86_400;
/** Longer than `tokens.retry_window`. */
const WINDOW = 90;
const USED =
  'an earlier refresh token was sent although its successor is in use, so the whole authorization was revoked: ' +
  'store the refresh token that each refresh returns';
const OLD = 'it was issued before the client was renewed: send the person through the authorization again';

onPostgresAndRedis('renewing a robbed client', (start) => {
  const on = startSeeded({ on: start, clock: true, settings: { senders: LEAK_SENDERS } });

  const idOf = ({ refreshToken }: Tokens): string => refreshToken.slice('gate_rt_'.length).slice(0, 22);
  const read = (tokens: Tokens) => on.service.store.readAuthorization(idOf(tokens));
  const isActive = ({ accessToken }: Tokens) => on.partner.isActive(accessToken);
  const next = (client: TestClient, { refreshToken }: Tokens) => granted(refresh(on.issuer, client, refreshToken));
  const refused = async (client: TestClient, { refreshToken }: Tokens, cause?: string) =>
    expectRefusal(await refresh(on.issuer, client, refreshToken), 400, 'invalid_grant', cause);
  const renew = async (client: TestClient): Promise<TestClient> => ({
    ...client,
    secret: (await on.service.clients.renew(client.id)).secret,
  });
  /** The partner confirms that it has received its tokens, and the retry window passes. */
  async function settle(tokens: Tokens): Promise<void> {
    expect(await isActive(tokens)).to.equal(true);
    await eventually(async () => expect(await read(tokens)).to.include({ isConfirmed: true }));
    on.clock.advance(WINDOW);
  }

  /** What happened between the theft and the renewal. @returns the partner's tokens, and all that a thief may have */
  const THEFTS: Readonly<Record<string, (client: TestClient) => Promise<{ mine: Tokens; stolen: Tokens[] }>>> = {
    'the thief refreshed, and then once more': async (client) => {
      const mine = await on.partner.tokens(client);
      const first = await next(client, mine);
      return { mine, stolen: [mine, first, await next(client, first)] };
    },
    'the partner refreshed after the thief': async (client) => {
      const first = await on.partner.tokens(client);
      const stolen = await next(client, first);
      return { mine: await next(client, first), stolen: [first, stolen] };
    },
  };

  for (const [what, steal] of Object.entries(THEFTS)) {
    it(`${what}: after the renewal the partner continues with the new secret, and no stolen token is accepted`, async () => {
      const client = await addTestClient(on.service, 'Robbed Planner');
      const { mine, stolen } = await steal(client);
      const renewed = await renew(client);
      const expectThiefRefused = async (tokens: Tokens) => {
        expect(await isActive(tokens)).to.equal(false);
        expectRefusal(await refresh(on.issuer, client, tokens.refreshToken), 401, 'invalid_client');
        expect((await revokeCurrent(on.issuer, tokens.accessToken)).status, 'a thief ends nothing').to.equal(401);
      };
      for (const tokens of [mine, ...stolen]) await expectThiefRefused(tokens);
      const lifted = await next(renewed, mine);
      expect(await isActive(lifted)).to.equal(true);
      for (const tokens of [mine, ...stolen]) {
        await expectThiefRefused(tokens);
        await reportLeaks(on.service, [{ token: tokens.refreshToken }, { token: tokens.accessToken }]);
      }
      expect(await isActive(lifted), 'also after the thief has published everything').to.equal(true);
      const after = await next(renewed, lifted);
      await settle(after);
      await refused(renewed, lifted, USED);
      expect(await isActive(after), 'a replay ends the authorization as ever').to.equal(false);
    });
  }

  it('workers that refresh in parallel with different tokens after a renewal get the same new refresh token', async () => {
    const client = await addTestClient(on.service, 'Robbed Planner');
    const first = await on.partner.tokens(client);
    const mine = await next(client, first);
    const renewed = await renew(client);
    const presented = Array.from({ length: 6 }, (_, index) => (index % 2 ? mine : first));
    const answers = await Promise.all(presented.map((tokens) => next(renewed, tokens)));
    expect(new Set(answers.map(({ refreshToken }) => refreshToken)).size).to.equal(1);
    expect(await Promise.all(answers.map(isActive))).to.deep.equal(answers.map(() => true));
  });

  it('a node that missed the renewal of a client refuses to refresh the client’s tokens, but does not end them', async () => {
    const client = await addTestClient(on.service, 'Robbed Planner');
    const mine = await on.partner.tokens(client);
    const step = { attempt: 'another node', refreshSeconds: DAY, retryWindowSeconds: 60, clientGeneration: 1 };
    for (const from of [0, 1]) {
      const rotated = await on.service.store.rotate(idOf(mine), { ...step, from });
      expect(rotated).to.include({ outcome: 'issued', rotation: from + 1 });
      const lifted = await read(mine);
      // After the second rotation, this is a token that any other node would take for a replay.
      await refused(client, mine, 'the client was renewed: refresh tokens of before need its new secret');
      expect(await read(mine)).to.deep.equal(lifted);
    }
  });

  it('a node that missed the renewal refuses a code that was issued after it, and the code stays valid', async () => {
    const client = await addTestClient(on.service, 'Robbed Planner');
    const renewed = await renew(client);
    const code = await on.partner.code(renewed);
    const knowAs = async (generation: number): Promise<void> => {
      await on.service.database.query('UPDATE clients SET generation = $2 WHERE id = $1', [client.id, generation]);
      await eventually(async () => expect(await on.service.clients.find(client.id)).to.include({ generation }));
    };
    await knowAs(0);
    expectRefusal(await exchangeCode(on.issuer, renewed, code), 400, 'invalid_grant', OLD);
    await knowAs(1);
    expect(await isActive(tokensOf(await exchangeCode(on.issuer, renewed, code)))).to.equal(true);
  });

  it('after a client renewal, the error for an old code names the renewal, and an open consent page still works', async () => {
    const client = await addTestClient(on.service, 'Robbed Planner');
    const { browser } = on.partner;
    const code = await on.partner.code(client);
    const page = await browser.open(authorizationUrl(on.issuer, client, { prompt: 'consent' }));
    const renewed = await renew(client);
    for (const _ of [1, 2]) expectRefusal(await exchangeCode(on.issuer, renewed, code), 400, 'invalid_grant', OLD);
    const { location } = await browser.follow(await browser.submit(page, { decision: 'approve' }));
    const later = location?.searchParams.get('code') ?? '';
    const tokens = tokensOf(await exchangeCode(on.issuer, renewed, later));
    expect(await isActive(tokens)).to.equal(true);
    expect(await isActive(await on.partner.tokens(renewed)), 'without a consent page').to.equal(true);
  });

  it('a renewal ends machine tokens and the old secret, and this cause is recorded; the new secret works', async () => {
    const { machine } = on.clients;
    const before = tokensOf(await clientCredentials(on.issuer, machine));
    const renewed = await renew(machine);
    expect(await isActive(before)).to.equal(false);
    expectRefusal(await clientCredentials(on.issuer, machine), 401, 'invalid_client');
    // A refused request is recorded in the background, after its answer.
    await eventually(async () => {
      const [problem] = await recordedProblems(on.service, machine.id);
      expect(problem?.cause).to.include('a renewal of the client has ended');
    });
    expect(await isActive(tokensOf(await clientCredentials(on.issuer, renewed)))).to.equal(true);
  });

  it('a suspended client can be renewed and stays suspended; a second renewal within a minute is refused', async () => {
    const client = await addTestClient(on.service, 'Robbed Planner');
    const mine = await on.partner.tokens(client);
    await on.service.clients.suspend(client.id);
    const renewed = await renew(client);
    expectRefusal(await refresh(on.issuer, renewed, mine.refreshToken), 401, 'invalid_client');
    const second = await on.service.clients.renew(client.id).catch((error) => error);
    expect(second).to.include({ code: 'renewed_just_now' });
    await on.service.clients.resume(client.id);
    expect(await isActive(await next(renewed, mine))).to.equal(true);
    const { public: ofPhone, resourceServer } = on.clients;
    for (const { id } of [ofPhone, resourceServer]) {
      expect(await on.service.clients.renew(id).catch((error) => error)).to.include({ code: 'not_renewable' });
    }
  });
});
