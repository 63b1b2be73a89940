/** The usual requests of clients, users and the GraphQL API, as load. */
import { authorizationUrl, type TestClient } from '../test/support/oauth.ts';
import { createPerson } from '../test/support/person.ts';
import { besideKoa, type Comparison, PARTS } from './beside-koa.ts';
import type { RunningDeployment, StartedProgram } from './deployment.ts';
import { type Measurement, measure } from './load.ts';
import { exchangeOf, form, inBody, introspectionOf, refreshOf } from './token-requests.ts';

export interface Scenario {
  readonly name: string;
  readonly comparison: Comparison;
}

export interface Scale {
  /** The duration of each scenario that would otherwise never end. */
  readonly seconds: number;
  /** Number of authorizations to create; as many are exchanged and revoked afterwards. */
  readonly authorizations: number;
}

/** Runs all scenarios. Each uses the results of the previous one: codes, then their tokens. */
export async function runScenarios(
  deployment: RunningDeployment,
  koa: StartedProgram,
  scale: Scale,
): Promise<Scenario[]> {
  const { issuer, machines, partners } = deployment;
  const { resourceServer, machine } = deployment.seed.clients;
  const seconds = { seconds: scale.seconds / PARTS };
  const each = (count: number) => ({ requests: Math.floor(count / PARTS) });
  const scenarios: Scenario[] = [];
  const run = async (name: string, part: () => Promise<Measurement>): Promise<void> => {
    scenarios.push({ name, comparison: await besideKoa(koa, deployment, part) });
  };

  // Warm-up, not measured: Node takes seconds of load to compile what all scenarios use.
  await measure(issuer, { seconds: 5 }, askForMachineTokens([machine]));
  for (const [name, clients] of [
    [`client credentials, ${machines.length} clients`, machines],
    ['client credentials, one client', [machine]],
  ] as const) {
    await run(name, () => measure(issuer, seconds, askForMachineTokens(clients)));
  }

  const codes: { client: TestClient; code: string }[] = [];
  const cookie = await signedIn(deployment);
  const nextPartner = takeEach(partners);
  await run('authorization, signed in and approved before', () =>
    measure(issuer, each(scale.authorizations), () => {
      const client = nextPartner();
      const { pathname, search } = authorizationUrl(issuer, client);
      return {
        next: () => ({ method: 'GET', path: pathname + search, headers: { cookie } }),
        answered({ location }) {
          const code = location && new URL(location).searchParams.get('code');
          if (code) codes.push({ client, code });
        },
      };
    }),
  );

  const tokens: { client: TestClient; accessToken: string; refreshToken: string }[] = [];
  const nextCode = takeEach(codes);
  await run('code exchange', () =>
    measure(issuer, each(codes.length), () => {
      let client: TestClient;
      return {
        next() {
          const next = nextCode();
          client = next.client;
          return exchangeOf(client, next.code);
        },
        answered({ body }) {
          const answer = JSON.parse(body) as Record<string, string>;
          const { access_token: accessToken, refresh_token: refreshToken } = answer;
          if (accessToken && refreshToken) tokens.push({ client, accessToken, refreshToken });
        },
      };
    }),
  );

  const nextToken = takeEach(tokens);
  await run('introspection', () =>
    measure(issuer, seconds, () => ({
      next: () => introspectionOf(resourceServer, nextToken().accessToken),
    })),
  );

  for (const [name, clients] of [
    [`refresh, ${partners.length} clients`, partners],
    ['refresh, one client', partners.slice(0, 1)],
  ] as const) {
    const next = takeEach(tokens.filter(({ client }) => clients.includes(client)));
    await run(name, () =>
      measure(issuer, seconds, () => {
        const token = next();
        return {
          next: () => refreshOf(token.client, token.refreshToken),
          answered({ body }) {
            token.refreshToken = (JSON.parse(body) as Record<string, string>).refresh_token ?? '';
          },
        };
      }),
    );
  }

  const nextRevoked = takeEach(tokens);
  await run('revoke', () =>
    measure(issuer, each(tokens.length), () => ({
      next: () => ({
        method: 'POST',
        path: '/oauth/token/revoke',
        headers: { authorization: `Bearer ${nextRevoked().accessToken}` },
      }),
    })),
  );
  return scenarios;
}

function askForMachineTokens(machines: readonly TestClient[]) {
  const next = takeEach(machines);
  return () => ({
    next: () => form('/oauth/token', { grant_type: 'client_credentials', ...inBody(next()) }),
  });
}

/** Signs in and approves each partner app once. @returns the cookies of that browser */
async function signedIn({ issuer, seed, partners }: RunningDeployment): Promise<string> {
  const person = createPerson(issuer);
  for (const partner of partners) await person.authorize(authorizationUrl(issuer, partner), seed.person);
  return person.cookieHeader('/oauth/authorize');
}

/** Returns the items one after another, and starts again after the last. */
function takeEach<Item>(items: readonly Item[]): () => Item {
  let taken = 0;
  return () => {
    const item = items[taken % items.length];
    if (item === undefined) throw new Error('the scenario before this one left nothing');
    taken += 1;
    return item;
  };
}
