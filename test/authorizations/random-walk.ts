/** Random steps through the life of authorizations, in the service and in the reference model. */
import { expect } from 'chai';
import fc from 'fast-check';
import { createDisconnect, createDisconnectSome } from '../../src/authorizations/endings.ts';
import { cheapPasswords } from '../support/cheap-passwords.ts';
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
import { describeOn, postgresServer, redisServer } from '../support/requirements.ts';
import type { Deployment } from '../support/service.ts';
import { Model, type ModelAuthorization } from './model.ts';
import { DAY } from './model-memberships.ts';
import { account, anyReachStep, client, often, reachedIn } from './reach-steps.ts';
import { membershipStep } from './walked-memberships.ts';
import { type Issued, openWorld, required, type Step, type World } from './walked-world.ts';

/** The authorization of a step, its state in the model, and what was issued for it. */
interface Chosen {
  readonly chosen: ModelAuthorization;
  readonly issued: Issued;
  readonly client: TestClient;
  readonly model: Model;
  readonly world: World;
}

/** A step for an existing authorization. @param pick the position of the authorization, counted from the latest one */
const forOne = (name: string, pick: number, run: (chosen: Chosen) => Promise<void>): Step => ({
  name: `${name} of authorization -${pick}`,
  check: ({ authorizations }) => authorizations.length > 0,
  run(model, world) {
    const { authorizations } = model;
    const chosen = required(authorizations[authorizations.length - 1 - (pick % authorizations.length)]);
    return run({ chosen, ...lookUp(world, chosen), model, world });
  },
});

const parallel = (times: number, send: () => Promise<HttpAnswer>): Promise<HttpAnswer[]> =>
  Promise.all(Array.from({ length: times }, send));

const exchange = ([pick, times]: [number, number]): Step =>
  forOne(`exchange × ${times}`, pick, async (given) => {
    const { chosen, issued, client, model, world } = given;
    const { issuer } = world.service;
    const answers = await parallel(times, () => exchangeCode(issuer, client, issued.code));
    const expected = model.exchange(chosen);
    const issues = answers.filter(({ status }) => status === 200);
    expect(issues.length, texts(answers)).to.equal(expected === 'issued' ? 1 : 0);
    for (const answer of issues) store(given, answer, 0);
    // All but one of the parallel requests are replays of the same code, which end the authorization.
    if (expected === 'issued' && times > 1) model.end(chosen);
  });

/** @param age 0 for the current refresh token, 1 for its predecessor. */
const refreshing = ([pick, times, age]: [number, number, number]): Step =>
  forOne(`refresh × ${times}, age ${age},`, pick, async (given) => {
    const { chosen, issued, client, model, world } = given;
    const rotation = issued.refreshTokens.length - 1 - age;
    const value = issued.refreshTokens[rotation];
    if (value === undefined) return;
    const answers = await parallel(times, () => refresh(world.service.issuer, client, value));
    const expected = model.refresh(chosen, rotation);
    for (const answer of answers) {
      expect(answer.status === 200 ? 'issued' : 'refused', answer.text).to.equal(expected);
      if (expected === 'issued') store(given, answer, required(chosen.stored).rotation);
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
    const isStored = model.storedRecord(chosen) !== undefined && access.expiresAt > model.now;
    const isValid = isStored && model.mayEnd(chosen, access);
    const { status } = await revokeCurrent(world.service.issuer, access.value);
    expect(status).to.equal(isValid ? 204 : 401);
    if (isValid) model.end(chosen);
  });

const revokingByClient = (pick: number): Step =>
  forOne('revocation by RFC 7009', pick, async ({ chosen, issued, client, model, world }) => {
    const token = issued.refreshTokens[0];
    if (token === undefined) return;
    const mayAsk = model.isUsable(chosen.client);
    const { status } = await postForm(world.service.issuer, '/oauth/revoke', { token }, { client });
    expect(status).to.equal(mayAsk ? 200 : 401);
    if (mayAsk && model.storedRecord(chosen)) model.end(chosen);
  });

/** Owner of each client; a client without an entry belongs to the operator. */
const OWNERS: Readonly<Record<string, string>> = { confidential: 'other' };

/** @param exchanges number of parallel exchanges of the code, 0 for none. */
const connecting = ([account, client, exchanges]: [string, string, number]): Step => ({
  name: `connect ${account} and ${client}, exchange × ${exchanges}`,
  // Skip a client whose owner is suspended: it cannot be approved.
  check: (model) => [account, client, OWNERS[client]].every((one) => one === undefined || model.isUsable(one)),
  async run(model, world) {
    const code = await world.authorize(account, client);
    const authorization = model.connect(account, client);
    world.issued.set(authorization, { code, refreshTokens: [], accessTokens: [] });
    if (exchanges > 0) await exchange([0, exchanges]).run(model, world);
  },
});

/** A request without a page: a code only if the account has approved the client, which does not always ask. */
const silently = ([account, client]: [string, string]): Step => ({
  name: `${account} and ${client} without a page`,
  check: (model) => [account, client, OWNERS[client]].every((one) => one === undefined || model.isUsable(one)),
  async run(model, world) {
    const isApproved = model.isConnected(account, client) && !model.alwaysAsking.has(client);
    expect(await world.authorizeSilently(account, client)).to.equal(isApproved ? 'code' : 'consent_required');
  },
});

const alwaysAsking = ([name, isOn]: [string, boolean]): Step => ({
  name: `${name} asks ${isOn ? 'every time' : 'once'}`,
  check: (model) => !model.deleted.has(name),
  async run(model, { service, clients }) {
    await service.clients.setAlwaysAsks(required(clients.get(name)).id, isOn, 'operator');
    model.alwaysAsking[isOn ? 'add' : 'delete'](name);
  },
});

/** The user or the operator ends one connection, or all connections of a user. */
const disconnecting = ([account, client, isByPerson]: [string, string | undefined, boolean]): Step => ({
  name: `disconnect ${account} and ${client ?? 'every client'}`,
  async run(model, { service, people, clients }) {
    const disconnect = createDisconnect(service.connections, service.activity);
    const { accountId } = required(people.get(account));
    const clientId = client && required(clients.get(client)).id;
    const origin = isByPerson ? { address: '127.0.0.1', browser: 'walk' } : undefined;
    await disconnect({ accountId, ...(clientId && { clientId }) }, origin);
    model.disconnect((ofAccount, ofClient) => account === ofAccount && (client ?? ofClient) === ofClient);
  },
});

/** The operator ends everything that was issued to the client. @param isMarked false if the rows stay as they are */
const endingAll = ([name, isMarked]: [string, boolean]): Step => ({
  name: `end everything of ${name}${isMarked ? '' : ', whose rows are not marked'}`,
  check: (model) => !model.deleted.has(name),
  async run(model, { service: { clients: registry, connections, activity, database }, clients }) {
    const { id } = required(clients.get(name));
    await registry.revoke(id);
    if (isMarked) await createDisconnectSome(connections, activity)(id, undefined, async () => {});
    await database.transaction((tx) => registry.finishRevocation(id, tx));
    model.renew(name);
    model.disconnect((_account, client) => client === name);
  },
});

const suspending = ([name, isResuming]: [string, boolean]): Step => ({
  name: `${isResuming ? 'resume' : 'suspend'} ${name}`,
  check: (model) => !model.deleted.has(name) && model.suspended.has(name) === isResuming,
  async run(model, { service, people, clients }) {
    const does = isResuming ? 'resume' : 'suspend';
    const accountId = people.get(name)?.accountId;
    if (accountId) await service.accounts[does](accountId);
    else await service.clients[does](required(clients.get(name)).id);
    if (isResuming) model.suspended.delete(name);
    else model.suspended.add(name);
  },
});

const deletingClient: Step = {
  name: 'delete a client',
  check: (model) => !model.deleted.has('otherConfidential'),
  async run(model, { service, clients }) {
    await service.clients.remove(required(clients.get('otherConfidential')).id);
    model.disconnect((_account, client) => client === 'otherConfidential');
    model.deleted.add('otherConfidential');
  },
};

/** The client was robbed, and is renewed. The thief had a copy of its secret, and of all tokens. */
const renewing = (name: string): Step => ({
  name: `renew ${name}`,
  check: (model) => !model.deleted.has(name),
  async run(model, world) {
    const client = required(world.clients.get(name));
    const { secret } = await world.service.clients.renew(client.id);
    // Each renewal needs a pause of a minute; a walk takes less time.
    await world.service.database.query(`UPDATE clients SET renewed_at = renewed_at - interval '1 hour' WHERE id = $1`, [
      client.id,
    ]);
    world.stolen.push({ name, client });
    world.clients.set(name, { ...client, secret });
    model.renew(name);
  },
});

/** The thief uses every value that was issued: what was stolen gives nothing, and ends nothing. */
const thieving = (pick: number): Step =>
  forOne('theft', pick, async ({ chosen, issued, model, world }) => {
    const { service, stolen, seeded } = world;
    const theft = stolen.findLast(({ name }) => name === chosen.client);
    if (theft) {
      const { client } = theft;
      const presented = [
        exchangeCode(service.issuer, client, issued.code),
        ...issued.refreshTokens
          .slice(-4)
          .filter((token) => token)
          .map((token) => refresh(service.issuer, client, token)),
      ];
      for (const { status, text } of await Promise.all(presented)) expect(status, text).to.equal(401);
    }
    for (const token of issued.accessTokens.slice(-4)) {
      if (model.isOfPresent(chosen, token)) continue;
      if (!model.mayEnd(chosen, token)) {
        expect((await revokeCurrent(service.issuer, token.value)).status).to.equal(401);
      }
      const { body } = await introspect(service.issuer, seeded.clients.resourceServer, token.value);
      expect(body.active).to.equal(false);
    }
  });

const passing = (seconds: number): Step => ({
  name: `${seconds} s pass`,
  async run(model, world) {
    world.time.advance(seconds);
    model.pass(seconds);
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
  name: 'an older copy of the token store comes back',
  check: (model) => model.hasBackup,
  async run(model, world) {
    await world.restore();
    model.restore();
  },
};

const either = fc.constantFrom('person', 'other', 'confidential', 'otherConfidential');
const pick = fc.nat(3);
const duration = fc.oneof(
  { weight: 30, arbitrary: fc.constantFrom(20, 80, 400, 1_000) },
  { weight: 6, arbitrary: fc.constantFrom(4_000, DAY, 29 * DAY) },
  { weight: 1, arbitrary: fc.constantFrom(31 * DAY, 366 * DAY) },
);

/** Any step; refreshing and calling APIs are the most frequent ones, as in real use. */
const anyStep = fc.oneof(
  { weight: 10, arbitrary: fc.tuple(account, client, often(1, 1, 1, 0, 5)).map(connecting) },
  { weight: 3, arbitrary: fc.tuple(account, client).map(silently) },
  { weight: 2, arbitrary: fc.tuple(client, fc.boolean()).map(alwaysAsking) },
  { weight: 1, arbitrary: fc.tuple(pick, fc.constant(1)).map(exchange) },
  { weight: 25, arbitrary: fc.tuple(pick, often(1, 6), often(0, 1, 2)).map(refreshing) },
  { weight: 12, arbitrary: fc.tuple(pick, often(1, 2, 4)).map(introspecting) },
  { weight: 1, arbitrary: pick.map(revokingCurrent) },
  { weight: 1, arbitrary: pick.map(revokingByClient) },
  {
    weight: 1,
    arbitrary: fc.tuple(account, fc.option(client, { nil: undefined }), fc.boolean()).map(disconnecting),
  },
  { weight: 1, arbitrary: fc.tuple(client, fc.boolean()).map(endingAll) },
  { weight: 1, arbitrary: either.map((one) => suspending([one, false])) },
  { weight: 10, arbitrary: either.map((one) => suspending([one, true])) },
  { weight: 9, arbitrary: anyReachStep },
  { weight: 8, arbitrary: membershipStep },
  { weight: 10, arbitrary: duration.map(passing) },
  { weight: 2, arbitrary: client.map(renewing) },
  { weight: 3, arbitrary: pick.map(thieving) },
  { weight: 2, arbitrary: fc.constant(backingUp) },
  { weight: 2, arbitrary: fc.constant(restoring) },
  { weight: 2, arbitrary: often(restarting, deletingClient) },
);

/** Runs the step, and then compares the latest four authorizations with the model. */
const checked = ({ name, check = () => true, run }: Step): fc.AsyncCommand<Model, World> => ({
  check: (model) => check(model as Model),
  async run(model, world) {
    await run(model, world);
    for (const chosen of model.authorizations.slice(-4)) {
      const token = lookUp(world, chosen).issued.accessTokens.at(-1);
      // Do not introspect an unconfirmed rotation: that would confirm it.
      const { stored } = chosen;
      const isUnseen = stored && !stored.isConfirmed && token?.rotation === stored.rotation;
      if (token && !(isUnseen && stored.rotation > 0)) {
        await expectIntrospection(model, world, chosen, token);
      }
    }
  },
  toString: () => name,
});

/** A new seed for each run. A failure prints it, and `SEED=…` repeats the same walk. */
const SEED = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));

/** Tests that after any order of events, introspection and refresh of authorizations match a model. */
export function describeRandomWalks(
  deployments: Partial<Record<Deployment, { readonly walks: number; readonly steps: number }>>,
): void {
  for (const [deployment, { walks, steps }] of Object.entries(deployments)) {
    const servers = { postgres: postgresServer, redis: redisServer };
    const needed = Object.entries(servers).flatMap(([name, server]) => (deployment.includes(name) ? [server] : []));
    describeOn(needed, `random walks through authorizations, ${deployment}`, () => {
      cheapPasswords();
      it(`random walks of up to ${steps} steps agree with the reference model (${walks}, seed ${SEED})`, () =>
        walk(deployment as Deployment, { walks, steps, seed: SEED }));
    });
  }
}

/** Runs walks of at most `steps` steps. @throws an error with the seed and the shortest failing walk. */
export async function walk(
  deployment: Deployment,
  { walks, steps, seed, redisUrl }: { walks: number; steps: number; seed: number; redisUrl?: string },
  createModel = () => new Model(),
): Promise<void> {
  const commands = fc.commands([anyStep.map(checked)], { maxCommands: steps, size: 'max' });
  const property = fc.asyncProperty(commands, async (chosen) => {
    const world = await openWorld(deployment, redisUrl);
    try {
      await fc.asyncModelRun(() => ({ model: createModel(), real: world }), chosen);
    } finally {
      await world.close();
    }
  });
  await fc.assert(property, { numRuns: walks, seed, includeErrorInReport: true });
}

async function expectIntrospection(
  model: Model,
  { nodes, service, seeded, places }: World,
  chosen: ModelAuthorization,
  token: Issued['accessTokens'][number],
): Promise<void> {
  const wasConfirmed = chosen.stored?.isConfirmed;
  const expected = model.introspect(chosen, token);
  const reach = model.reach.of(chosen.account, chosen.client);
  await eventually(async () => {
    for (const { issuer } of nodes) {
      const { body } = await introspect(issuer, seeded.clients.resourceServer, token.value);
      expect(body.active, `introspection of ${JSON.stringify(chosen)}`).to.equal(expected);
      if (expected) expect(reachedIn(body, places)).to.deep.equal(reach);
    }
    const { body } = await introspect(service.issuer, seeded.clients.resourceServer, token.value);
    if (wasConfirmed || !chosen.stored?.isConfirmed) return;
    const record = await service.store.readAuthorization(String(body.authorization));
    expect(record?.isConfirmed, 'confirmed').to.equal(true);
  });
}

function store({ issued, chosen, model }: Chosen, { body }: HttpAnswer, rotation: number): void {
  issued.refreshTokens[rotation] = String(body.refresh_token);
  const expiresAt = model.now + Number(body.expires_in);
  const clientGeneration = model.generationOf(chosen.client);
  issued.accessTokens.push({ value: String(body.access_token), rotation, expiresAt, clientGeneration });
}

function lookUp({ issued, clients }: World, chosen: ModelAuthorization) {
  return { issued: required(issued.get(chosen)), client: required(clients.get(chosen.client)) };
}

const texts = (answers: readonly HttpAnswer[]): string => answers.map(({ text }) => text).join('\n');
