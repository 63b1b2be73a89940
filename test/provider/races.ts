/** Parallel requests, to two nodes on the same stores. */
import { expect } from 'chai';
import { signedIn } from '../pages/signed-in-person.ts';
import { cheapPasswords } from '../support/cheap-passwords.ts';
import { eventually } from '../support/eventually.ts';
import {
  type Answer,
  authorizationUrl,
  exchangeCode,
  introspect,
  postForm,
  refresh,
  revokeCurrent,
  type TestClient,
} from '../support/oauth.ts';
import { createOpened } from '../support/opened.ts';
import { createPerson, type Page } from '../support/person.ts';
import { describeOn, postgresServer, redisServer } from '../support/requirements.ts';
import { addTestClient, type Seed } from '../support/seed.ts';
import { startAndSeed } from '../support/seeded.ts';
import { type Start, type StartOptions, startTestService, type TestService } from '../support/service.ts';
import { answerIn } from './authorization-outcome.ts';
import { type PartnerTokens, partnerTokens, type Tokens, tokensOf } from './partner-tokens.ts';
import { expectRefusal } from './refusals.ts';

const PARALLEL = 20;

/** How often each race is run. */
interface Rounds {
  readonly each: number;
  /** Rounds of each race of equal requests, which have no order to try. */
  readonly equals: number;
  /** Rounds of each race of a refresh with a revocation, whose steps interleave in any order. */
  readonly revocations: number;
  /** Rounds of each race of two decisions, whose orders are all tried. */
  readonly decisions: number;
}

/** A number of rounds in which some refreshes win and some lose, on any machine. */
const ENOUGH_FOR_BOTH = 50;

export function defineRaces(rounds: Rounds): void {
  forEachRace('races', (open) => {
    describe('with a retry window for refreshes, parallel requests leave no revoked token active', () => {
      let nodes: Nodes;
      before(async () => {
        nodes = await open(60);
      });

      it('no token survives the revocation of its authorization, even if a refresh runs at any moment', () =>
        revokeDuringRefresh(nodes, rounds.revocations));
      it('no token survives if the connection ends while its code is exchanged', () =>
        endDuringExchange(nodes, rounds.each));
      it('no refresh succeeds once the client or the account is suspended', () =>
        suspendDuringRefresh(nodes, rounds.each));
      it('no token of a deleted client survives, even if a refresh runs at any moment', () =>
        deleteDuringRefresh(nodes, rounds.each));

      it('one of several parallel exchanges of a code succeeds, and the failed ones revoke the tokens of the code', () =>
        exchangeTogether(nodes, rounds.equals));
      it('parallel refreshes of one token all answer 200, with the same successor', () =>
        refreshTogether(nodes, rounds.equals));

      it('the client receives only one decision of a parallel Approve and Deny, and that one is saved', () =>
        decideTogether(nodes, rounds.decisions));
      it('signing out is final, even during many requests with a copy of the cookie', () =>
        signOutDuringRequests(nodes, rounds.equals));
      for (const step of ['Approve', 'Sign in'] as const) {
        it(`several parallel clicks on ${step} do not sign the user out`, () =>
          clickTogether(nodes, step, rounds.equals));
      }
    });

    it('without a retry window one refresh succeeds, and the others end the authorization', async () => {
      const nodes = await open(0);
      await refreshTogetherStrictly(nodes, rounds.equals);
    });
  });
}

async function exchangeTogether(nodes: Nodes, rounds: number): Promise<void> {
  const { partner, issuer, seeded } = nodes;
  const { confidential } = seeded.clients;
  for (let round = 0; round < rounds; round += 1) {
    const code = await partner.code(confidential);
    const answers = await together(PARALLEL, (turn) => exchangeCode(issuer(turn), confidential, code));
    const issued = successes(answers);
    expect(issued, `round ${round}`).to.have.length(1);
    await expectRevoked(nodes, issued);
  }
}

async function refreshTogether({ partner, issuer, seeded }: Nodes, rounds: number): Promise<void> {
  const { confidential } = seeded.clients;
  let current = await partner.tokens(confidential);
  for (let round = 0; round < rounds; round += 1) {
    const { refreshToken } = current;
    const answers = await together(PARALLEL, (turn) => refresh(issuer(turn), confidential, refreshToken));
    const issued = successes(answers);
    expect(issued, `round ${round}`).to.have.length(PARALLEL);
    expect(new Set(issued.map((tokens) => tokens.refreshToken)).size).to.equal(1);
    current = issued[round % PARALLEL] ?? current;
    expect(current.refreshToken).to.not.equal(refreshToken);
    expect(await partner.isActive(current.accessToken)).to.equal(true);
  }
}

async function refreshTogetherStrictly(nodes: Nodes, rounds: number): Promise<void> {
  const { partner, issuer, seeded } = nodes;
  const { confidential } = seeded.clients;
  for (let round = 0; round < rounds; round += 1) {
    const tokens = await partner.tokens(confidential);
    const answers = await together(PARALLEL, (turn) => refresh(issuer(turn), confidential, tokens.refreshToken));
    const issued = successes(answers);
    expect(issued, `round ${round}`).to.have.length(1);
    await expectRevoked(nodes, [tokens, ...issued]);
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
      // Use both revocation endpoints, in turn.
      () =>
        round % 2 === 0
          ? revokeCurrent(issuer(round / 2), token)
          : postForm(issuer((round - 1) / 2), '/oauth/revoke', { token }, { client: confidential }),
    );
    expect(revoked.status).to.equal(round % 2 === 0 ? 204 : 200);
    const issued = successes(answers);
    refreshed += issued.length;
    await expectRevoked(nodes, [tokens, ...issued]);
  }
  // Expect both outcomes: otherwise no revocation overlapped with a refresh.
  if (rounds >= ENOUGH_FOR_BOTH) expect(refreshed, 'refreshes that succeeded').to.be.within(1, 2 * rounds - 1);
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
  // Suspend the client and the account in turn.
  for (let round = 0; round < 2 * rounds; round += 1) {
    const isClient = round % 2 === 0;
    const { refreshToken } = current;
    const issued = await refreshDuring(nodes, round, confidential, refreshToken, () =>
      isClient ? service.clients.suspend(confidential.id) : service.accounts.suspend(accountId),
    );
    await expectRefusedEverywhere(nodes, confidential, [current, ...issued], isClient ? 401 : 400);

    await service.clients.resume(confidential.id);
    await service.accounts.resume(accountId);
    current = await eventually(async () => {
      const answers = await together(2, (turn) => refresh(issuer(turn), confidential, refreshToken));
      for (const { status } of answers) expect(status).to.equal(200);
      return tokensOf(answers[0] ?? { body: {} });
    });
  }
}

async function deleteDuringRefresh(nodes: Nodes, rounds: number): Promise<void> {
  const { service, partner } = nodes;
  for (let round = 0; round < rounds; round += 1) {
    const client = await addTestClient(service, `Short-lived ${round}`);
    const tokens = await partner.tokens(client);
    const issued = await refreshDuring(nodes, round, client, tokens.refreshToken, () =>
      service.clients.remove(client.id),
    );
    await expectRefusedEverywhere(nodes, client, [tokens, ...issued], 401);
  }
}

async function decideTogether({ service, seeded }: Nodes, rounds: number): Promise<void> {
  const browser = await signedIn(service, seeded.person);
  const { confidential } = seeded.clients;
  const whose = { accountId: seeded.person.accountId, clientId: confidential.id };
  await service.connections.end(whose, 'person_disconnected');
  for (let round = 0; round < rounds; round += 1) {
    const consent = await browser.open(authorizationUrl(service.issuer, confidential));
    const decide = (decision: string) => async (): Promise<Page> =>
      browser.follow(await browser.submit(consent, { decision }));
    const pages = await offset(round, decide('approve'), decide('deny'));

    const answers = pages.filter(({ location }) => location).map(answerIn);
    expect(answers, `round ${round}`).to.have.length(1);
    const isConnected = (await service.connections.find(whose.accountId, whose.clientId)) !== undefined;
    expect(isConnected, `round ${round}`).to.equal(answers[0]?.error === undefined);
    await service.connections.end(whose, 'person_disconnected');
  }
}

async function signOutDuringRequests({ service, seeded, issuer }: Nodes, rounds: number): Promise<void> {
  const silent = authorizationUrl('http://any', seeded.clients.confidential, { prompt: 'none' });
  for (let round = 0; round < rounds; round += 1) {
    const person = await signedIn(service, seeded.person);
    const cookie = person.cookieHeader('/');
    const copies = [0, 1].map((turn) => createPerson(issuer(turn)));
    let isPolling = true;
    const poll = async (ask: () => Promise<Page>): Promise<void> => {
      while (isPolling) expect((await ask()).status).to.be.below(500);
    };
    const polls = copies.flatMap((copy) => [
      poll(() => copy.get('/profile', { cookie })),
      poll(() => copy.get(`${silent.pathname}${silent.search}`, { cookie })),
      poll(() => copy.post('/oauth/token/refresh', {}, { cookie })),
    ]);
    const { status } = await person.submit(await person.get('/logout'), {});
    isPolling = false;
    await Promise.all(polls);

    expect(status).to.equal(303);
    const profile = await createPerson(service.issuer).get('/profile', { cookie });
    expect(profile.location?.pathname, `round ${round}`).to.equal('/login');
  }
}

async function clickTogether({ service, seeded }: Nodes, step: 'Approve' | 'Sign in', rounds: number): Promise<void> {
  const { email, password } = seeded.person;
  const fields = step === 'Approve' ? { decision: 'approve' } : { email, password };
  const prompt = step === 'Approve' ? 'consent' : 'login';
  for (let round = 0; round < rounds; round += 1) {
    const person = await signedIn(service, seeded.person);
    const asked = await person.open(authorizationUrl(service.issuer, seeded.clients.confidential, { prompt }));
    const click = async (): Promise<Page> => person.follow(await person.submit(asked, fields));
    const pages = await Promise.all([click(), click(), click(), click()]);
    for (const { status } of pages) expect(status).to.be.oneOf([200, 303, 410]);
    expect((await person.get('/profile')).status, `round ${round}`).to.equal(200);
  }
}

/** @returns the tokens of the refreshes that succeeded */
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

/** Expects that the node that made the change refuses immediately, and the other node once it is notified. */
async function expectRefusedEverywhere(
  { issuer, seeded }: Nodes,
  client: TestClient,
  tokens: readonly Tokens[],
  status: number,
): Promise<void> {
  for (const turn of [0, 1]) {
    const refusesAll = async (): Promise<void> => {
      for (const { accessToken, refreshToken } of tokens) {
        const seen = await introspect(issuer(turn), seeded.clients.resourceServer, accessToken);
        expect(seen.text).to.equal('{"active":false}');
        expect(await refresh(issuer(turn), client, refreshToken)).to.include({ status });
      }
    };
    await (turn === 0 ? refusesAll() : eventually(refusesAll));
  }
}

const DEPLOYMENTS = [
  { deployment: 'postgres', title: 'PostgreSQL', needs: [postgresServer] },
  {
    deployment: 'postgres+redis',
    title: 'PostgreSQL and Redis',
    needs: [postgresServer, redisServer],
  },
] as const;

/** Each order of two requests that `offset` tries once. */
const ORDERS = 24;

/** High limits, so that no request of a race is refused as a guess. */
const limits = { clientFailures: 10_000, clientFailuresPerAddress: 10_000 };

/**
 * Defines the suite with the tokens in PostgreSQL, and in Redis. The embedded database carries out one statement after
 * the other. Each call of `open` starts nodes with seeded stores.
 */
function forEachRace(title: string, body: (open: (retryWindowSeconds: number) => Promise<Nodes>) => void): void {
  for (const { deployment, needs, title: place } of DEPLOYMENTS) {
    describeOn(needs, `${title}, ${place}`, () => {
      cheapPasswords();
      const opened = createOpened();
      after('close the nodes', opened.closeAll);
      const start = (options: StartOptions): Promise<TestService> =>
        opened.add(startTestService(options), ({ close }) => close());

      /** Start two nodes with different clocks on the same stores. */
      body(async (retryWindowSeconds) => {
        const settings = { tokens: { retryWindowSeconds }, limits };
        const begin: Start = (more) => start({ ...more, deployment, settings });
        const { service: first, seeded } = await startAndSeed(begin);
        const issuers = [first.issuer, (await start({ sharing: first, ahead: 120 })).issuer];
        return {
          service: first,
          seeded,
          partner: partnerTokens(first.issuer, seeded),
          issuer: (turn) => issuers[turn % issuers.length] ?? '',
        };
      });
    });
  }
}

interface Nodes {
  readonly service: TestService;
  readonly seeded: Seed;
  readonly partner: PartnerTokens;
  /** Returns the issuer of a node, alternating with each turn. */
  readonly issuer: (turn: number) => string;
}

const together = (count: number, request: (turn: number) => Promise<Answer>): Promise<readonly Answer[]> =>
  Promise.all(Array.from({ length: count }, (_, turn) => request(turn)));

/** Starts both requests, offset by some turns of the event loop that differ each round. */
function offset<First, Second>(
  round: number,
  first: () => Promise<First>,
  second: () => Promise<Second>,
): Promise<[First, Second]> {
  const after = async (turns: number): Promise<void> => {
    for (let turn = 0; turn < turns; turn += 1) {
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  // Go through all values from -8 to 15 in `ORDERS`, beginning with values that are far apart.
  const lead = ((round * 5) % ORDERS) - 8;
  return Promise.all([after(-lead).then(first), after(lead).then(second)]);
}

/** Returns the tokens of the successful answers. All other answers must be `invalid_grant`. */
function successes(answers: readonly Answer[]): Tokens[] {
  const refused = answers.filter(({ status }) => status !== 200);
  for (const answer of refused) expectRefusal(answer, 400, 'invalid_grant');
  return answers.filter(({ status }) => status === 200).map(tokensOf);
}

async function expectRevoked({ issuer, seeded }: Nodes, tokens: readonly Tokens[]): Promise<void> {
  const { resourceServer, confidential } = seeded.clients;
  await Promise.all(
    tokens.map(async ({ accessToken, refreshToken }, turn) => {
      const seen = await introspect(issuer(turn), resourceServer, accessToken);
      expect(seen.text).to.equal('{"active":false}');
      const { status, text } = await refresh(issuer(turn + 1), confidential, refreshToken);
      expect(status, text).to.equal(400);
    }),
  );
}
