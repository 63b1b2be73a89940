/** The service that a random walk uses, and the codes and tokens of its clients and users. */
import type { Cluster, Redis } from 'ioredis';
import { createRedis, mastersOf } from '../../src/storage/redis/redis.ts';
import { SENDERS } from '../import/pushing.ts';
import { outcomeOf } from '../provider/authorization-outcome.ts';
import { createTestClock, type TestClock } from '../support/clock.ts';
import { authorizationUrl, type TestClient } from '../support/oauth.ts';
import { createPerson, type Person } from '../support/person.ts';
import { type Seed, type SeededPerson, seed } from '../support/seed.ts';
import { type Deployment, startTestService, type TestService } from '../support/service.ts';
import { type IssuedAccessToken, LIFETIMES, type Model, type ModelAuthorization } from './model.ts';
import type { PlaceKey } from './reach-model.ts';

/** Everything that was issued for one authorization, in the order of rotations. */
export interface Issued {
  code: string;
  readonly refreshTokens: string[];
  readonly accessTokens: (IssuedAccessToken & { readonly value: string })[];
}

export interface Step {
  readonly name: string;
  /** Returns whether the step is possible in this state of the model. */
  readonly check?: (model: Model) => boolean;
  readonly run: (model: Model, world: World) => Promise<void>;
}

export class World {
  readonly issued = new Map<ModelAuthorization, Issued>();
  readonly retired: TestService[] = [];
  readonly #browsers = new Map<string, Person>();
  readonly people: ReadonlyMap<string, SeededPerson>;
  readonly clients: Map<string, TestClient>;
  /** A thief has a copy of every value that was issued, and these former credentials of clients. */
  readonly stolen: { readonly name: string; readonly client: TestClient }[] = [];
  /** The ids of organizations and warehouses. */
  readonly places: Readonly<Record<PlaceKey, string>>;
  readonly seeded: Seed;
  readonly time: TestClock;
  service: TestService;
  #backup: readonly { key: string; value: unknown; ttl: number }[] = [];

  constructor(service: TestService, seeded: Seed, places: Readonly<Record<PlaceKey, string>>, time: TestClock) {
    this.service = service;
    this.seeded = seeded;
    this.places = places;
    this.time = time;
    this.people = new Map([
      ['person', seeded.person],
      ['other', seeded.other],
    ]);
    const { confidential, otherConfidential } = seeded.clients;
    this.clients = new Map([
      ['confidential', confidential],
      ['otherConfidential', otherConfidential],
    ]);
  }

  /** @returns the authorization code. */
  async authorize(account: string, client: string): Promise<string> {
    const url = authorizationUrl(this.service.issuer, required(this.clients.get(client)));
    const redirect = await this.#browserOf(account).authorize(url, required(this.people.get(account)));
    return required(redirect.searchParams.get('code'));
  }

  /** Signs in if necessary, and sends a request without a page. @returns `code`, or the error code */
  async authorizeSilently(account: string, client: string): Promise<string> {
    const browser = this.#browserOf(account);
    const page = await browser.open('/profile');
    if (page.forms.some(({ names }) => names.has('password'))) {
      const { email, password } = required(this.people.get(account));
      await browser.submit(page, { email, password });
    }
    const { issuer } = this.service;
    const request = authorizationUrl(issuer, required(this.clients.get(client)), { prompt: 'none' });
    return outcomeOf(browser, request);
  }

  #browserOf(account: string): Person {
    const { issuer } = this.service;
    const browser = this.#browsers.get(account + issuer) ?? createPerson(issuer);
    this.#browsers.set(account + issuer, browser);
    return browser;
  }

  /** Replaces the service as after a crash. If its stores are servers, the old node is closed only later. */
  async restart(): Promise<void> {
    this.retired.push(this.service);
    const { settings } = this.service;
    const { port: _port, ...server } = settings.server;
    if (settings.storage.databaseUrl === undefined) {
      await this.retired.pop()?.close();
      this.service = await startTestService({ clock: this.time.clock, settings });
      return;
    }
    this.service = await startTestService({
      clock: this.time.clock,
      sharing: this.service,
      settings: { server, tokens: LIFETIMES },
    });
  }

  /** The current node, and the one before it, which still runs if the stores are servers. */
  get nodes(): readonly TestService[] {
    return [this.service, ...this.retired.slice(-1)];
  }

  async backUp(): Promise<void> {
    const { redisUrl } = this.service.settings.storage;
    if (redisUrl === undefined) {
      const rows = await this.service.database.query('SELECT * FROM authorizations');
      this.#backup = rows.map((value) => ({ key: '', value, ttl: 0 }));
      return;
    }
    await this.#inRedis(redisUrl, async (redis) => {
      const keys = await authorizationsIn(redis);
      this.#backup = await Promise.all(
        keys.map(async (key) => ({
          key,
          value: await redis.get(key),
          ttl: Math.max(1, await redis.pttl(key)),
        })),
      );
    });
  }

  /** Replaces the records of all authorizations by those of the backup. */
  async restore(): Promise<void> {
    const { database, settings } = this.service;
    const { redisUrl } = settings.storage;
    if (redisUrl === undefined) {
      const rows = JSON.stringify(this.#backup.map(({ value }) => value));
      await database.query('DELETE FROM authorizations');
      await database.query(
        'INSERT INTO authorizations SELECT * FROM json_populate_recordset(NULL::authorizations, $1)',
        [rows],
      );
    } else {
      await this.#inRedis(redisUrl, async (redis) => {
        for (const key of await authorizationsIn(redis)) await redis.del(key);
        for (const { key, value, ttl } of this.#backup) await redis.set(key, String(value), 'PX', ttl);
      });
    }
  }

  async #inRedis(url: string, work: (redis: Redis | Cluster) => Promise<void>): Promise<void> {
    const redis = createRedis(url);
    await redis.connect();
    await work(redis).finally(() => redis.disconnect());
  }

  async close(): Promise<void> {
    for (const service of [this.service, ...this.retired]) await service.close();
    this.time.restore();
  }
}

const authorizationsIn = async (redis: Redis | Cluster): Promise<string[]> =>
  (await Promise.all(mastersOf(redis).map((master) => master.keys('gh:z:*')))).flat();

const DAY = 86_400;

/** Starts a new service with the lifetimes of the model. */
export async function openWorld(deployment: Deployment, redisUrl?: string): Promise<World> {
  const time = createTestClock();
  const storage = redisUrl === undefined ? {} : { storage: { redisUrl } };
  const settings = {
    tokens: LIFETIMES,
    sessions: { idleSeconds: DAY },
    senders: SENDERS,
    import: { removalsPerHour: '1000000' },
    // A thief sends many wrong secrets.
    limits: { clientFailures: 1_000_000, clientFailuresPerAddress: 1_000_000 },
    ...storage,
  };
  const starting = startTestService({ deployment, clock: time.clock, settings });
  // Restore the clock if the start fails: otherwise it would stand still for all later files.
  const service = await starting.catch((error: unknown) => {
    time.restore();
    throw error;
  });
  const seeded = await seed(service);
  const { organization, elsewhere, other } = seeded;
  await service.memberships.setRole({ accountId: other.accountId }, organization.id, 'owner');
  const add = async (organizationId: string, name: string) =>
    (await service.organizations.addWarehouse({ organizationId, name })).id;
  const places = {
    elsewhere: elsewhere.id,
    riga: await add(elsewhere.id, 'Riga'),
    organization: organization.id,
    hamburg: await add(organization.id, 'Hamburg'),
    rotterdam: seeded.warehouse.id,
  };
  return new World(service, seeded, places, time);
}

export function required<Value>(value: Value | null | undefined): Value {
  if (value === undefined || value === null) throw new Error('a value is missing');
  return value;
}
