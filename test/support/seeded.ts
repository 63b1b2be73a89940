/** A service with users and clients in it, as most suites need it. */
import { type PartnerTokens, partnerTokens } from '../provider/partner-tokens.ts';
import { createTestClock, realNow, type TestClock } from './clock.ts';
import { madeOnce } from './made-once.ts';
import { type FilledTemplate, filledTemplate } from './postgres-server.ts';
import { type Seed, seed } from './seed.ts';
import {
  type Deployment,
  type Start,
  type StartOptions,
  startsOn,
  startTestService,
  type TestService,
} from './service.ts';

interface SeededOptions extends Omit<StartOptions, 'deployment' | 'clock' | 'createDatabase'> {
  /** A deployment, or the function that `forEachDeployment` passes to run the suite on each. */
  readonly on?: Start | Deployment;
  /** Stops the time, at the present or at this date, until the suite moves it. */
  readonly clock?: boolean | Date;
}

/** What a suite can use once its hooks have run. */
export interface Seeded {
  readonly service: TestService;
  readonly issuer: string;
  readonly seeded: Seed;
  readonly clients: Seed['clients'];
  /** Obtains the codes and tokens that the seeded person grants to partners, in one browser. */
  readonly partner: PartnerTokens;
  /** @throws Error if the suite did not request a clock */
  readonly clock: TestClock;
}

/**
 * Starts the service before the tests of the suite that calls this, seeds it, and closes it after
 * them: `const on = startSeeded(); it('…', () => on.seeded.person …)`.
 */
export function startSeeded(options: SeededOptions = {}): Seeded {
  const { on, clock: wanted = false, ...rest } = options;
  const start = typeof on === 'function' ? on : startsOn(on);
  let time: TestClock | undefined;
  let running: Omit<Seeded, 'clock'> | undefined;

  before('start and seed the service', async () => {
    if (wanted) time = createTestClock(wanted === true ? undefined : wanted);
    const begin: Start = (more) => start({ ...rest, ...(time && { clock: time.clock }), ...more });
    const { service, seeded } = await startAndSeed(begin, { mayCopy: !(wanted instanceof Date) });
    const { issuer } = service;
    const partner = partnerTokens(issuer, seeded);
    running = { service, issuer, seeded, clients: seeded.clients, partner };
  });
  after('restore the real time', () => time?.restore());

  return {
    get service() {
      return ready(running).service;
    },
    get issuer() {
      return ready(running).issuer;
    },
    get seeded() {
      return ready(running).seeded;
    },
    get clients() {
      return ready(running).clients;
    },
    get partner() {
      return ready(running).partner;
    },
    get clock() {
      return ready(time);
    },
  };
}

/**
 * Starts a service in a hook or test, with the rows of `seed`: in a copied database, if it is on the shared server.
 *
 * @param start passes the options that it gets to the start
 * @param options `mayCopy`: false for a time in the past, because the copied rows are a minute old
 */
export async function startAndSeed(
  start: Start,
  { mayCopy = true }: { mayCopy?: boolean } = {},
): Promise<{ readonly service: TestService; readonly seeded: Seed }> {
  let copied: { readonly url: string; readonly seeded: Seed } | undefined;
  const createDatabase = async (): Promise<string> => {
    const { copy, value } = await seededTemplate();
    copied = { url: await copy(), seeded: value };
    return copied.url;
  };
  const service = await start(mayCopy ? { createDatabase } : {});
  if (copied === undefined || copied.url !== service.settings.storage.databaseUrl) {
    return { service, seeded: await seed(service) };
  }
  // Tests that begin at once would meet its statements.
  await service.firstCleaning;
  return { service, seeded: copied.seeded };
}

/** A database that is seeded once for all suites of this process: to copy it costs a third of seeding another one. */
const seededTemplate: () => Promise<FilledTemplate<Seed>> = madeOnce(() => filledTemplate(seedOnce));

async function seedOnce(databaseUrl: string): Promise<Seed> {
  const clock = () => realNow() - 60_000;
  const service = await startTestService({ settings: { storage: { databaseUrl } }, clock });
  try {
    return await seed(service);
  } finally {
    await service.close();
  }
}

function ready<Value>(value: Value | undefined): Value {
  if (value === undefined) throw new Error('read outside hooks and tests, or not in the options');
  return value;
}
