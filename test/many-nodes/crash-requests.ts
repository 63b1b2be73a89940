/** Requests of clients that change something. Other requests that end an authorization end it by the same function. */
import { expect } from 'chai';
import { readValue } from '../../src/authorizations/token-formats.ts';
import { granted, type Tokens, tokensOf } from '../provider/partner-tokens.ts';
import { clientCredentials, exchangeCode, postForm, refresh, type TestClient } from '../support/oauth.ts';
import type { TestService } from '../support/service.ts';
import type { CrashWorld } from './crash-world.ts';
import type { Attempt, Operation } from './crashes.ts';

export const expectStatus = async (
  answer: Promise<{ readonly status: number }>,
  ...wanted: readonly number[]
): Promise<void> => void expect((await answer).status).to.be.oneOf(wanted);

/** The checks of an operation that ends an authorization: it is inactive, and refreshes are refused. */
export function ending(
  world: CrashWorld,
  client: TestClient,
  { accessToken, refreshToken }: Tokens,
): Pick<Attempt, 'isDone' | 'isDoneAtApi' | 'expectDone'> {
  return {
    isDone: async (node) => !(await world.isActive(accessToken, node)),
    isDoneAtApi: async () => !(await world.call(accessToken)).isAccepted,
    async expectDone() {
      for (const { issuer } of world.nodes) {
        await expectStatus(refresh(issuer, client, refreshToken), 400);
      }
    },
  };
}

/** Like `ending`, for requests of a client: also checks that the end is recorded with its cause. */
const endingByClient =
  (
    cause: string,
    prepare: (
      world: CrashWorld,
      client: TestClient,
      issuer: string,
    ) => Promise<Tokens & Pick<Attempt, 'act' | 'retry'>>,
  ): Operation =>
  async (world) => {
    const { confidential: client } = world.seeded.clients;
    const { act, retry, ...tokens } = await prepare(world, client, world.node.issuer);
    await world.remember(tokens.accessToken);
    const ended = ending(world, client, tokens);
    return {
      act,
      retry,
      ...ended,
      async expectDone() {
        await ended.expectDone?.();
        const id = readValue(tokens.accessToken)?.authorizationId ?? '';
        expect(await world.node.revocations.find(id)).to.include({ cause });
      },
    };
  };

const revocation = endingByClient('client_revoked', async (world, client, issuer) => {
  const tokens = await world.partner.tokens(client);
  const act = () => expectStatus(postForm(issuer, '/oauth/revoke', { token: tokens.refreshToken }, { client }), 200);
  return { ...tokens, act, retry: act };
});

const replayOfCode = endingByClient('code_replayed', async (world, client, issuer) => {
  const code = await world.partner.code(client);
  const act = () => expectStatus(exchangeCode(issuer, client, code), 400);
  return { ...tokensOf(await exchangeCode(issuer, client, code)), act, retry: act };
});

const revocationOfMachineToken: Operation = async (world) => {
  const { issuer } = world.node;
  const { machine: client } = world.seeded.clients;
  const token = String((await clientCredentials(issuer, client)).body.access_token);
  await world.remember(token);
  const act = () => expectStatus(postForm(issuer, '/oauth/revoke', { token }, { client }), 200);
  return {
    act,
    retry: act,
    isDone: async (node) => !(await world.isActive(token, node)),
    isDoneAtApi: async () => !(await world.call(token)).isAccepted,
  };
};

/** Exchanges a code. If the answer was lost, the code may be consumed: then a new authorization must succeed. */
const exchange: Operation = async (world) => {
  const { issuer } = world.node;
  const { confidential: client } = world.seeded.clients;
  const code = await world.partner.code(client);
  let tokens: Tokens | undefined;
  return {
    async act() {
      tokens = await granted(exchangeCode(issuer, client, code));
    },
    isDone: async (node) => {
      const id = readValue(code)?.authorizationId ?? '';
      const record = await node.store.readAuthorization(id);
      return record === undefined || record.rotation >= 0;
    },
    async retry() {
      const again = await exchangeCode(issuer, client, code);
      if (again.status === 200) tokens = tokensOf(again);
      else {
        expect(again.body).to.include({ error: 'invalid_grant' });
        const id = readValue(code)?.authorizationId ?? '';
        expect(await world.node.store.readAuthorization(id)).to.equal(undefined);
        tokens = await world.partner.tokens(client);
      }
    },
    expectDone: () => expectUsable(world, client, tokens),
  };
};

export async function expectUsable(world: CrashWorld, client: TestClient, tokens: Tokens | undefined): Promise<void> {
  let { accessToken, refreshToken } = tokens ?? { accessToken: '', refreshToken: '' };
  for (const node of world.nodes) {
    expect(await world.isActive(accessToken, node)).to.equal(true);
    ({ accessToken, refreshToken } = await granted(refresh(node.issuer, client, refreshToken)));
  }
}

const refreshing: Operation = async (world) => {
  const { issuer } = world.node;
  const { confidential: client } = world.seeded.clients;
  const before = await world.partner.tokens(client);
  const { rotation: from = 0 } = (await recordOf(before.accessToken, world.node)) ?? {};
  let tokens: Tokens | undefined;
  const act = async (): Promise<void> => {
    tokens = await granted(refresh(issuer, client, before.refreshToken));
  };
  return {
    act,
    retry: act,
    isDone: async (node) => {
      const record = await recordOf(before.accessToken, node);
      return (record?.rotation ?? 0) > from;
    },
    expectDone: () => expectUsable(world, client, tokens),
  };
};

const recordOf = (token: string, node: TestService) =>
  node.store.readAuthorization(readValue(token)?.authorizationId ?? '');

export const REQUESTS: Readonly<Record<string, Operation>> = {
  'a code exchange': exchange,
  'a refresh': refreshing,
  'a revocation (RFC 7009)': revocation,
  'a revocation of a machine token': revocationOfMachineToken,
  'a replay of a code': replayOfCode,
};
