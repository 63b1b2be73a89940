/** A service with users and clients in it, as most suites need it. */
import { type PartnerTokens, partnerTokens } from '../provider/partner-tokens.ts';
import { createTestClock, type TestClock } from './clock.ts';
import { type Seed, seed } from './seed.ts';
import {
  type Deployment,
  type Start,
  type StartOptions,
  startsOn,
  type TestService,
} from './service.ts';

export interface SeededOptions extends Omit<StartOptions, 'deployment' | 'clock'> {
  /** A deployment, or the function that `forEachDeployment` passes to run the suite on each. */
  readonly on?: Start | Deployment;
  /** Stops the time, at the present or at this date, until the suite moves it. */
  readonly clock?: boolean | Date;
  /** For the clients that have redirect URIs; they use the first one. */
  readonly redirectUris?: readonly string[];
}

/** Available to a suite once its hooks have run. */
export interface Seeded {
  readonly service: TestService;
  readonly issuer: string;
  readonly seeded: Seed;
  readonly clients: Seed['clients'];
  /** Obtains what the seeded person grants to partners, in one browser. */
  readonly partner: PartnerTokens;
  /** @throws Error if the suite did not request one */
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
  after('give the real time back', () => time?.restore());

  return {
    get service() {
      return there(running).service;
    },
    get issuer() {
      return there(running).issuer;
    },
    get seeded() {
      return there(running).seeded;
    },
    get clients() {
      return there(running).clients;
    },
    get partner() {
      return there(running).partner;
    },
    get clock() {
      return there(time);
    },
  };
}

function there<Value>(value: Value | undefined): Value {
  if (value === undefined) throw new Error('asked for outside hooks and tests, or not ordered');
  return value;
}
