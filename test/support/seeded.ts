/** A service with users and clients in it, as most suites need it. */
import { type PartnerTokens, partnerTokens } from '../provider/partner-tokens.ts';
import { createTestClock, type TestClock } from './clock.ts';
import { type Seed, seed } from './seed.ts';
import { type Deployment, type Start, type StartOptions, startsOn, type TestService } from './service.ts';

export interface SeededOptions extends Omit<StartOptions, 'deployment' | 'clock'> {
  /** A deployment, or the function that `forEachDeployment` passes to run the suite on each. */
  readonly on?: Start | Deployment;
  /** Stops the time, at the present or at this date, until the suite moves it. */
  readonly clock?: boolean | Date;
  /** The redirect URIs of each client that has any; the tests use the first one. */
  readonly redirectUris?: readonly string[];
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
  const { on, clock: wanted = false, redirectUris, ...rest } = options;
  const start = typeof on === 'function' ? on : startsOn(on);
  let time: TestClock | undefined;
  let running: Omit<Seeded, 'clock'> | undefined;

  before('start and seed the service', async () => {
    if (wanted) time = createTestClock(wanted === true ? undefined : wanted);
    const service = await start({ ...rest, ...(time && { clock: time.clock }) });
    const { issuer } = service;
    const seeded = await seed(service, redirectUris && { redirectUris });
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

function ready<Value>(value: Value | undefined): Value {
  if (value === undefined) throw new Error('read outside hooks and tests, or not in the options');
  return value;
}
