/** Nodes on the same stores, and parallel requests to them. */
import { expect } from 'chai';
import { cheapPasswords } from '../support/cheap-passwords.ts';
import { type Answer, introspect, refresh } from '../support/oauth.ts';
import { createOpened } from '../support/opened.ts';
import { describeOn, postgresServer, redisServer } from '../support/requirements.ts';
import type { Seed } from '../support/seed.ts';
import { startAndSeed } from '../support/seeded.ts';
import { type Start, type StartOptions, startTestService, type TestService } from '../support/service.ts';
import { type PartnerTokens, partnerTokens, type Tokens, tokensOf } from './partner-tokens.ts';
import { expectRefusal } from './refusals.ts';

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
export function forEachRace(title: string, body: (open: (retryWindowSeconds: number) => Promise<Nodes>) => void): void {
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

export interface Nodes {
  readonly service: TestService;
  readonly seeded: Seed;
  readonly partner: PartnerTokens;
  /** Returns the issuer of a node, alternating with each turn. */
  readonly issuer: (turn: number) => string;
}

export const together = (count: number, request: (turn: number) => Promise<Answer>): Promise<readonly Answer[]> =>
  Promise.all(Array.from({ length: count }, (_, turn) => request(turn)));

/** Starts both requests, offset by some turns of the event loop that differ each round. */
export function offset<First, Second>(
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
export function successes(answers: readonly Answer[]): Tokens[] {
  const refused = answers.filter(({ status }) => status !== 200);
  for (const answer of refused) expectRefusal(answer, 400, 'invalid_grant');
  return answers.filter(({ status }) => status === 200).map(tokensOf);
}

export async function expectRevoked({ issuer, seeded }: Nodes, tokens: readonly Tokens[]): Promise<void> {
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
