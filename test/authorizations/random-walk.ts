/** Random steps through the life of authorizations, at the service and at the reference model. */
import { expect } from 'chai';
import fc from 'fast-check';
import { createDisconnect } from '../../src/authorizations/endings.ts';
import { eventually } from '../support/eventually.ts';
import {
  exchangeCode,
  type Answer as HttpAnswer,
  introspect,
  postForm,
  refresh,
  revokeCurrent,
  type TestClient,
} from '../support/oauth.ts';
import type { Deployment } from '../support/service.ts';
import { Model, type ModelAuthorization } from './model.ts';
import { type Issued, openWorld, there, type World } from './walked-world.ts';

interface Step {
  readonly name: string;
  /** Whether it can be gone now. */
  readonly check?: (model: Model) => boolean;
  readonly run: (model: Model, world: World) => Promise<void>;
}

/** What a step is told of the authorization it is for. */
interface Chosen {
  readonly chosen: ModelAuthorization;
  readonly issued: Issued;
  readonly client: TestClient;
  readonly model: Model;
  readonly world: World;
}

/** A step for one of the authorizations there are, counted from the latest. */
const forOne = (name: string, pick: number, run: (chosen: Chosen) => Promise<void>): Step => ({
  name: `${name} of authorization -${pick}`,
  check: ({ authorizations }) => authorizations.length > 0,
  run(model, world) {
    const { authorizations } = model;
    const chosen = there(
      authorizations[authorizations.length - 1 - (pick % authorizations.length)],
    );
    return run({ chosen, ...held(world, chosen), model, world });
  },
});

const together = (times: number, send: () => Promise<HttpAnswer>): Promise<HttpAnswer[]> =>
  Promise.all(Array.from({ length: times }, send));

const exchange = ([pick, times]: [number, number]): Step =>
  forOne(`exchange × ${times}`, pick, async ({ chosen, issued, client, model, world }) => {
    const { issuer } = world.service;
    const answers = await together(times, () => exchangeCode(issuer, client, issued.code));
    const expected = model.exchange(chosen);
    const good = answers.filter(({ status }) => status === 200);
    expect(good.length, texts(answers)).to.equal(expected === 'issued' ? 1 : 0);
    for (const answer of good) keep(issued, answer, 0, model);
    // The others are replays of a code that was just used.
    if (expected === 'issued' && times > 1) model.end(chosen);
  });

/** @param age 0 for the current refresh token, 1 for its predecessor. */
const refreshing = ([pick, times, age]: [number, number, number]): Step =>
  forOne(`refresh × ${times}, age ${age},`, pick, async (given) => {
    const { chosen, issued, client, model, world } = given;
    const rotation = issued.refreshTokens.length - 1 - age;
    const value = issued.refreshTokens[rotation];
    if (value === undefined) return;
    const answers = await together(times, () => refresh(world.service.issuer, client, value));
    const expected = model.refresh(chosen, rotation);
    for (const answer of answers) {
      expect(answer.status === 200 ? 'issued' : 'refused', answer.text).to.equal(expected);
      if (expected === 'issued') keep(issued, answer, rotation + 1, model);
    }
    expect(new Set(answers.map(({ body }) => body.refresh_token)).size, 'successors').to.equal(1);
  });

const introspecting = ([pick, back]: [number, number]): Step =>
  forOne('introspection', pick, async ({ chosen, issued, model, world }) => {
    const { accessTokens } = issued;
    const token = accessTokens[accessTokens.length - back] ?? accessTokens.at(-1);
    if (token) await expectIntrospection(model, world, chosen, token);
  });

const revokingCurrent = (pick: number): Step =>
  forOne('revocation by its access token', pick, async ({ chosen, issued, model, world }) => {
    const access = issued.accessTokens.at(-1);
    if (!access) return;
    const isGood = model.remembered(chosen) !== undefined && access.expiresAt > model.now;
    const { status } = await revokeCurrent(world.service.issuer, access.value);
    expect(status).to.equal(isGood ? 204 : 401);
    if (isGood) model.end(chosen);
  });

const revokingByClient = (pick: number): Step =>
  forOne('revocation by RFC 7009', pick, async ({ chosen, issued, client, model, world }) => {
    const token = issued.refreshTokens[0];
    if (token === undefined) return;
    const mayAsk = model.isUsable(chosen.client);
    const { status } = await postForm(world.service.issuer, '/oauth/revoke', { token }, { client });
    expect(status).to.equal(mayAsk ? 200 : 401);
    if (mayAsk && model.remembered(chosen)) model.end(chosen);
  });

/** Who registered the client; the other one is the operator's. */
const OWNERS: Readonly<Record<string, string>> = { confidential: 'other' };

/** @param exchanges how often the code is exchanged at once, if at all. */
const connecting = ([account, client, exchanges]: [string, string, number]): Step => ({
  name: `connect ${account} and ${client}, exchange × ${exchanges}`,
  // The client of somebody who is suspended collects no approvals.
  check: (model) =>
    [account, client, OWNERS[client]].every((one) => one === undefined || model.isUsable(one)),
  async run(model, world) {
    const code = await world.authorize(account, client);
    const authorization = model.connect(account, client);
    world.issued.set(authorization, { code, refreshTokens: [], accessTokens: [] });
    if (exchanges > 0) await exchange([0, exchanges]).run(model, world);
  },
});

/** By the person, or by the operator: of one connection, of a person or of a client. */
const disconnecting = ([account, client, isByPerson]: [
  string | undefined,
  string | undefined,
  boolean,
]): Step => ({
  name: `disconnect ${account ?? 'everybody'} and ${client ?? 'every client'}`,
  async run(model, { service, people, clients }) {
    const disconnect = createDisconnect(service.connections, service.activity);
    const accountId = account && there(people.get(account)).accountId;
    const clientId = client && there(clients.get(client)).id;
    const origin = isByPerson ? { address: '127.0.0.1', browser: 'walk' } : undefined;
    if (accountId) await disconnect({ accountId, ...(clientId && { clientId }) }, origin);
    else if (clientId) await disconnect({ clientId }, origin);
    else return;
    model.disconnect(
      (ofAccount, ofClient) =>
        (account ?? ofAccount) === ofAccount && (client ?? ofClient) === ofClient,
    );
  },
});

const suspending = ([name, isResuming]: [string, boolean]): Step => ({
  name: `${isResuming ? 'resume' : 'suspend'} ${name}`,
  check: (model) => !model.deleted.has(name) && model.suspended.has(name) === isResuming,
  async run(model, { service, people, clients }) {
    const does = isResuming ? 'resume' : 'suspend';
    const accountId = people.get(name)?.accountId;
    if (accountId) await service.accounts[does](accountId);
    else await service.clients[does](there(clients.get(name)).id);
    if (isResuming) model.suspended.delete(name);
    else model.suspended.add(name);
  },
});

const deletingClient: Step = {
  name: 'delete a client',
  check: (model) => !model.deleted.has('otherConfidential'),
  async run(model, { service, clients }) {
    await service.clients.remove(there(clients.get('otherConfidential')).id);
    model.disconnect((_account, client) => client === 'otherConfidential');
    model.deleted.add('otherConfidential');
  },
};

const changingAccess = (role: 'member' | 'admin'): Step => ({
  name: `the person is ${role}`,
  async run(_model, { service, seeded }) {
    const { accountId } = seeded.person;
    await service.memberships.setRole({ accountId }, seeded.organization.id, role);
  },
});

const passing = (seconds: number): Step => ({
  name: `${seconds} s pass`,
  async run(model, world) {
    world.time.advance(seconds);
    model.now += seconds;
    await world.service.clean();
  },
});

const restarting: Step = { name: 'restart', run: (_model, world) => world.restart() };

const backingUp: Step = {
  name: 'back the token store up',
  async run(model, world) {
    await world.backUp();
    model.backUp();
  },
};

const restoring: Step = {
  name: 'restore the token store',
  check: (model) => model.hasBackup,
  async run(model, world) {
    await world.restore();
    model.restore();
  },
};

const DAY = 86_400;
const account = fc.constantFrom('person', 'other');
const client = fc.constantFrom('confidential', 'otherConfidential');
const either = fc.constantFrom('person', 'other', 'confidential', 'otherConfidential');
const pick = fc.nat(3);
/** Of one of these, the earlier ones more often. */
const often = <Value>(...values: readonly Value[]): fc.Arbitrary<Value> =>
  fc.oneof(
    ...values.map((value, index) => {
      return { weight: values.length - index, arbitrary: fc.constant(value) };
    }),
  );
const duration = fc.oneof(
  { weight: 30, arbitrary: fc.constantFrom(20, 80, 400, 1_000) },
  { weight: 6, arbitrary: fc.constantFrom(4_000, DAY, 29 * DAY) },
  { weight: 1, arbitrary: fc.constantFrom(31 * DAY, 366 * DAY) },
);

/** Any step, and how often it comes beside the others: most of a life is refreshing and calling. */
const anyStep = fc.oneof(
  { weight: 10, arbitrary: fc.tuple(account, client, often(1, 1, 1, 0, 5)).map(connecting) },
  { weight: 1, arbitrary: fc.tuple(pick, fc.constant(1)).map(exchange) },
  { weight: 25, arbitrary: fc.tuple(pick, often(1, 6), often(0, 1, 2)).map(refreshing) },
  { weight: 12, arbitrary: fc.tuple(pick, often(1, 2, 4)).map(introspecting) },
  { weight: 1, arbitrary: pick.map(revokingCurrent) },
  { weight: 1, arbitrary: pick.map(revokingByClient) },
  {
    weight: 1,
    arbitrary: fc
      .tuple(account, fc.option(client, { nil: undefined }), fc.boolean())
      .map(disconnecting),
  },
  { weight: 1, arbitrary: client.map((one) => disconnecting([undefined, one, false])) },
  { weight: 1, arbitrary: either.map((one) => suspending([one, false])) },
  { weight: 10, arbitrary: either.map((one) => suspending([one, true])) },
  { weight: 1, arbitrary: often('member' as const, 'admin' as const).map(changingAccess) },
  { weight: 10, arbitrary: duration.map(passing) },
  { weight: 2, arbitrary: fc.constant(backingUp) },
  { weight: 2, arbitrary: often(restarting, restoring, deletingClient) },
);

/** The step, and after it: every late authorization is as the model says. */
const checked = ({ name, check = () => true, run }: Step): fc.AsyncCommand<Model, World> => ({
  check: (model) => check(model as Model),
  async run(model, world) {
    await run(model, world);
    for (const chosen of model.authorizations.slice(-4)) {
      const token = held(world, chosen).issued.accessTokens.at(-1);
      // Looking must not change what is looked at: an unconfirmed rotation stays one.
      const { kept } = chosen;
      const isUnseen = kept && !kept.isConfirmed && token?.rotation === kept.rotation;
      if (token && !(isUnseen && kept.rotation > 0)) {
        await expectIntrospection(model, world, chosen, token);
      }
    }
  },
  toString: () => name,
});

/** Walks so many times through at most `steps` steps. @throws with the seed and the shortest walk. */
export async function walk(
  deployment: Deployment,
  {
    walks,
    steps,
    seed,
    redisUrl,
  }: { walks: number; steps: number; seed: number; redisUrl?: string },
): Promise<void> {
  const commands = fc.commands([anyStep.map(checked)], { maxCommands: steps, size: 'max' });
  const property = fc.asyncProperty(commands, async (chosen) => {
    const world = await openWorld(deployment, redisUrl);
    try {
      await fc.asyncModelRun(() => ({ model: new Model(), real: world }), chosen);
    } finally {
      await world.close();
    }
  });
  await fc.assert(property, { numRuns: walks, seed });
}

async function expectIntrospection(
  model: Model,
  { service, seeded }: World,
  chosen: ModelAuthorization,
  token: Issued['accessTokens'][number],
): Promise<void> {
  const wasConfirmed = chosen.kept?.isConfirmed;
  const expected = model.introspect(chosen, token);
  await eventually(async () => {
    const { body } = await introspect(service.issuer, seeded.clients.resourceServer, token.value);
    expect(body.active, `introspection of ${JSON.stringify(chosen)}`).to.equal(expected);
    if (wasConfirmed || !chosen.kept?.isConfirmed) return;
    const record = await service.store.readAuthorization(String(body.authorization));
    expect(record?.isConfirmed, 'confirmed').to.equal(true);
  });
}

function keep(issued: Issued, { body }: HttpAnswer, rotation: number, model: Model): void {
  issued.refreshTokens[rotation] = String(body.refresh_token);
  const expiresAt = model.now + Number(body.expires_in);
  issued.accessTokens.push({ value: String(body.access_token), rotation, expiresAt });
}

function held({ issued, clients }: World, chosen: ModelAuthorization) {
  return { issued: there(issued.get(chosen)), client: there(clients.get(chosen.client)) };
}

const texts = (answers: readonly HttpAnswer[]): string =>
  answers.map(({ text }) => text).join('\n');
