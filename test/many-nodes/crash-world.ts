/** A node that is killed and restarted, a second node that survives, and an API that caches its callers. */
import { expect } from 'chai';
import type { Introspector } from '../../modules/node/src/resource-server.ts';
import { bearer, introspectorOf } from '../../modules/node/test/stand-in.ts';
import { type PartnerTokens, partnerTokens } from '../provider/partner-tokens.ts';
import { eventually } from '../support/eventually.ts';
import { type Answer, introspect } from '../support/oauth.ts';
import { freePort } from '../support/programs.ts';
import { addPerson, type Seed, type SeededPerson, seed } from '../support/seed.ts';
import { type Overrides, startTestService, type TestService } from '../support/service.ts';
import { createLifeline, type Lifeline } from './lifeline.ts';

const DAY = 86_400;
const SETTINGS = {
  tokens: { accessTokenSeconds: DAY, machineAccessTokenSeconds: DAY },
  // Allow many failures, because some tests sign in with the old password.
  limits: { signInFailures: 1_000, signInFailuresPerAddress: 100_000, clientsPerPerson: 1_000 },
} satisfies Overrides;
/** Longer than the time after a change for which the module caches no answers. */
const UNTIL_REMEMBERED_MS = 10_000;

export class CrashWorld {
  /** The node that is killed. */
  node: TestService;
  readonly survivor: TestService;
  readonly lifeline: Lifeline;
  readonly seeded: Seed;
  /** The seeded person, signed in at the node. */
  readonly partner: PartnerTokens;
  readonly #api: Introspector;
  #ahead = 0;
  #people = 0;

  private constructor(node: TestService, survivor: TestService, lifeline: Lifeline, seeded: Seed) {
    this.node = node;
    this.survivor = survivor;
    this.lifeline = lifeline;
    this.seeded = seeded;
    this.partner = partnerTokens(node.issuer, seeded);
    this.#api = introspectorOf(seeded.clients.resourceServer, {
      issuer: survivor.issuer,
      live: true,
      clock: () => Date.now() + this.#ahead,
      onFailure: () => {},
    });
  }

  static async open(): Promise<CrashWorld> {
    const port = await freePort();
    const urls = { issuer: `http://localhost:${port}` };
    const survivor = await startTestService({ deployment: 'postgres+redis', settings: SETTINGS });
    const { databaseUrl = '', redisUrl = '' } = survivor.settings.storage;
    const lifeline = await createLifeline({ ...urls, databaseUrl, redisUrl });
    const { issuer, ...storage } = lifeline.urls;
    const settings = { issuer, server: { port }, storage };
    const node = await startTestService({ sharing: survivor, settings });
    return new CrashWorld(node, survivor, lifeline, await seed(survivor));
  }

  get nodes(): readonly TestService[] {
    return [this.node, this.survivor];
  }

  addPerson(name: string): Promise<SeededPerson> {
    this.#people += 1;
    return addPerson(this.node, name, `person${this.#people}@example.test`);
  }

  /** Starts the killed node again, at the same address. */
  async restart(): Promise<void> {
    const { settings } = this.node;
    await this.node.close();
    this.lifeline.restart();
    this.node = await startTestService({ settings, sharing: this.survivor });
  }

  async close(): Promise<void> {
    this.#api.close();
    await this.node.close();
    await this.lifeline.close();
    await this.survivor.close();
  }

  /** Asks this node as a resource server. */
  async introspect(value: string, node: TestService): Promise<Answer['body']> {
    const answer = await introspect(node.issuer, this.seeded.clients.resourceServer, value);
    expect(answer.status, answer.text).to.equal(200);
    return answer.body;
  }

  async isActive(value: string, node: TestService): Promise<boolean> {
    return (await this.introspect(value, node)).active === true;
  }

  /** Calls the API. @returns whether the API accepts the caller, and whether it did so from its cache. */
  async call(value: string): Promise<{ isAccepted: boolean; isRemembered: boolean }> {
    const { caller, refusal, decidedBy } = await this.#api.identify(bearer(value));
    if (refusal) expect(refusal.status, JSON.stringify(refusal)).to.equal(401);
    return { isAccepted: caller !== undefined, isRemembered: decidedBy === 'memory' };
  }

  /** Calls the API until it accepts these values from its cache. */
  async remember(...values: readonly string[]): Promise<void> {
    this.#ahead += UNTIL_REMEMBERED_MS;
    await eventually(async () => {
      for (const value of values) expect(await this.call(value)).to.include({ isAccepted: true });
      for (const value of values) expect(await this.call(value)).to.include({ isRemembered: true });
    });
  }
}
