/** Requests that arrive together, on one node or on two: what may happen once happens once. */
import { expect } from 'chai';
import { eventually } from '../support/eventually.ts';
import {
  type Answer,
  exchangeCode,
  introspect,
  postForm,
  refresh,
  revokeCurrent,
  type TestClient,
} from '../support/oauth.ts';
import { addTestClient } from '../support/seed.ts';
import { type Tokens, tokensOf } from './partner-tokens.ts';
import { expectDead, forEachRace, type Nodes, offset, successes, together } from './racing.ts';

const PARALLEL = 20;

/** How often each race is run. */
export interface Rounds {
  readonly each: number;
  /** Refresh against revocation, where every step of the one can meet every step of the other. */
  readonly revocations: number;
}

/** From here on some of the refreshes win and some lose, on any machine. */
const ENOUGH_FOR_BOTH = 50;

export function defineRaces(rounds: Rounds): void {
  forEachRace('races', (open) => {
    describe('with a retry window', () => {
      let nodes: Nodes;
      before(async () => {
        nodes = await open(60);
      });

      it('one code is exchanged once, and its replay ends the tokens', () =>
        exchangeTogether(nodes, rounds.each));
      it('all refreshes of one token answer 200 with one and the same successor', () =>
        refreshTogether(nodes, rounds.each));
      it('nothing issued by a revoked authorization lives, however the refresh is timed', () =>
        revokeDuringRefresh(nodes, rounds.revocations));
      it('nothing issued by an exchange lives when the connection ends meanwhile', () =>
        endDuringExchange(nodes, rounds.each));
      it('nothing refreshes once the client or the account is suspended', () =>
        suspendDuringRefresh(nodes, rounds.each));
      it('nothing of a deleted client lives, however the refresh is timed', () =>
        deleteDuringRefresh(nodes, rounds.each));
    });

    it('without a retry window one refresh succeeds, and the others end it all', async () => {
      await refreshTogetherStrictly(await open(0), rounds.each);
    });
  });
}

async function exchangeTogether(nodes: Nodes, rounds: number): Promise<void> {
  const { partner, issuer, seeded } = nodes;
  const { confidential } = seeded.clients;
  for (let round = 0; round < rounds; round += 1) {
    const code = await partner.code(confidential);
    const answers = await together(PARALLEL, (turn) =>
      exchangeCode(issuer(turn), confidential, code),
    );
    const given = successes(answers);
    expect(given, `round ${round}`).to.have.length(1);
    await expectDead(nodes, given);
  }
}

async function refreshTogether({ partner, issuer, seeded }: Nodes, rounds: number): Promise<void> {
  const { confidential } = seeded.clients;
  let current = await partner.tokens(confidential);
  for (let round = 0; round < rounds; round += 1) {
    const { refreshToken } = current;
    const answers = await together(PARALLEL, (turn) =>
      refresh(issuer(turn), confidential, refreshToken),
    );
    const given = successes(answers);
    expect(given, `round ${round}`).to.have.length(PARALLEL);
    expect(new Set(given.map((tokens) => tokens.refreshToken)).size).to.equal(1);
    expect(new Set(given.map((tokens) => tokens.accessToken)).size).to.equal(PARALLEL);
    current = given[round % PARALLEL] ?? current;
    expect(current.refreshToken).to.not.equal(refreshToken);
    expect(await partner.isActive(current.accessToken)).to.equal(true);
  }
}

async function refreshTogetherStrictly(nodes: Nodes, rounds: number): Promise<void> {
  const { partner, issuer, seeded } = nodes;
  const { confidential } = seeded.clients;
  for (let round = 0; round < rounds; round += 1) {
    const tokens = await partner.tokens(confidential);
    const answers = await together(PARALLEL, (turn) =>
      refresh(issuer(turn), confidential, tokens.refreshToken),
    );
    const given = successes(answers);
    expect(given, `round ${round}`).to.have.length(1);
    await expectDead(nodes, [tokens, ...given]);
  }
}

async function revokeDuringRefresh(nodes: Nodes, rounds: number): Promise<void> {
  const { partner, issuer, seeded } = nodes;
  const { confidential } = seeded.clients;
  let refreshed = 0;
  for (let round = 0; round < rounds; round += 1) {
    const tokens = await partner.tokens(confidential);
    const { accessToken: token, refreshToken } = tokens;
    const [answers, revoked] = await offset(
      round,
      () => together(2, (turn) => refresh(issuer(turn), confidential, refreshToken)),
      // Both ways to revoke, in turn.
      () =>
        round % 2 === 0
          ? revokeCurrent(issuer(round / 2), token)
          : postForm(issuer((round - 1) / 2), '/oauth/revoke', { token }, { client: confidential }),
    );
    expect(revoked.status).to.equal(round % 2 === 0 ? 204 : 200);
    const given = successes(answers);
    refreshed += given.length;
    await expectDead(nodes, [tokens, ...given]);
  }
  // Otherwise the revocations were never in the way of anything.
  if (rounds >= ENOUGH_FOR_BOTH)
    expect(refreshed, 'refreshes that won').to.be.within(1, 2 * rounds - 1);
}

async function endDuringExchange(nodes: Nodes, rounds: number): Promise<void> {
  const { partner, issuer, seeded } = nodes;
  const { confidential } = seeded.clients;
  for (let round = 0; round < rounds; round += 1) {
    const code = await partner.code(confidential);
    const disconnect = await partner.askToDisconnect(confidential);
    const exchange = () => exchangeCode(issuer(round), confidential, code);
    const [answer] = await offset(round, exchange, disconnect);
    await expectRefusedEverywhere(nodes, confidential, successes([answer]), 400);
  }
}

async function suspendDuringRefresh(nodes: Nodes, rounds: number): Promise<void> {
  const { service, partner, issuer, seeded } = nodes;
  const { confidential } = seeded.clients;
  const { accountId } = seeded.person;
  let current = await partner.tokens(confidential);
  // Client and account in turn.
  for (let round = 0; round < 2 * rounds; round += 1) {
    const isClient = round % 2 === 0;
    const { refreshToken } = current;
    const given = await refreshDuring(nodes, round, confidential, refreshToken, () =>
      isClient ? service.clients.suspend(confidential.id) : service.accounts.suspend(accountId),
    );
    await expectRefusedEverywhere(nodes, confidential, [current, ...given], isClient ? 401 : 400);

    await service.clients.resume(confidential.id);
    await service.accounts.resume(accountId);
    current = await eventually(async () => {
      const answers = await together(2, (turn) =>
        refresh(issuer(turn), confidential, refreshToken),
      );
      for (const { status } of answers) expect(status).to.equal(200);
      return tokensOf(answers[0] ?? { body: {} });
    });
  }
}

async function deleteDuringRefresh(nodes: Nodes, rounds: number): Promise<void> {
  const { service, partner } = nodes;
  let refreshed = 0;
  for (let round = 0; round < rounds; round += 1) {
    const client = await addTestClient(service, `Short-lived ${round}`);
    const tokens = await partner.tokens(client);
    const given = await refreshDuring(nodes, round, client, tokens.refreshToken, () =>
      service.clients.remove(client.id),
    );
    refreshed += given.length;
    await expectRefusedEverywhere(nodes, client, [tokens, ...given], 401);
  }
  // Otherwise the deletions were never in the way of anything.
  if (rounds >= ENOUGH_FOR_BOTH)
    expect(refreshed, 'refreshes that won').to.be.within(1, 4 * rounds - 1);
}

/** @returns what the refreshes that won were given. */
async function refreshDuring(
  { issuer }: Nodes,
  round: number,
  client: TestClient,
  refreshToken: string,
  end: () => Promise<unknown>,
): Promise<readonly Tokens[]> {
  const refreshes = () => together(4, (turn) => refresh(issuer(turn), client, refreshToken));
  const [answers] = await offset<readonly Answer[], unknown>(round, refreshes, end);
  for (const { status } of answers) expect(status).to.be.oneOf([200, 400, 401]);
  return answers.filter(({ status }) => status === 200).map(tokensOf);
}

/** The node where it was done refuses from now on; another one when it has heard of it. */
async function expectRefusedEverywhere(
  { issuer, seeded, deployment }: Nodes,
  client: TestClient,
  tokens: readonly Tokens[],
  status: number,
): Promise<void> {
  for (const turn of deployment === 'embedded' ? [0] : [0, 1]) {
    const expectRefusal = async (): Promise<void> => {
      for (const { accessToken, refreshToken } of tokens) {
        const seen = await introspect(issuer(turn), seeded.clients.resourceServer, accessToken);
        expect(seen.text).to.equal('{"active":false}');
        expect(await refresh(issuer(turn), client, refreshToken)).to.include({ status });
      }
    };
    await (turn === 0 ? expectRefusal() : eventually(expectRefusal));
  }
}
