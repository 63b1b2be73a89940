/** Starts the service with providers for the suites of this folder. */
import type { SignInProvider } from '../../src/config/sign-in-providers.ts';
import { createTestClock, type TestClock } from '../support/clock.ts';
import { freePort } from '../support/programs.ts';
import type { Seed } from '../support/seed.ts';
import { startAndSeed } from '../support/seeded.ts';
import { type Overrides, type Start, startsOn, type TestService } from '../support/service.ts';
import {
  createTraveller,
  startUpstream,
  type Traveller,
  type Upstream,
  type UpstreamAccount,
} from '../support/upstream.ts';

export interface WithUpstream {
  readonly service: TestService;
  readonly seeded: Seed;
  readonly clock: TestClock;
  /** The provider with the id `platform`. */
  readonly upstream: Upstream;
  /** The provider with the id `partner`, if the suite requested a second one. */
  readonly second: Upstream;
  /** A browser without cookies. */
  traveller(): Traveller;
  /** Settings with other ones of `platform`, as the only provider. */
  providing(changes: Partial<SignInProvider>, signIn?: Overrides['signIn']): Overrides;
  /** Signs in with `platform` as this user. @returns the last page. */
  signIn(account: UpstreamAccount, traveller?: Traveller): ReturnType<Traveller['travel']>;
}

/** The provider's claims about Grace, whose account `seed` creates with this address. */
export const GRACE = {
  sub: 'grace-at-the-platform',
  email: 'Grace@example.test',
  email_verified: true,
  name: 'Grace',
} satisfies UpstreamAccount;

export const WITH_PLATFORM = { sign_in_with: 'platform' };

/** Gives an account an id in another system, as an import does. */
export async function setExternalId(
  { database, accounts }: TestService,
  id: string,
  externalId: string,
): Promise<void> {
  await database.query('UPDATE accounts SET external_id = $1 WHERE id = $2', [externalId, id]);
  accounts.forget(id);
}

export function startWithUpstream(
  options: {
    /** Starts the service; `forEachDeployment` passes this to suites that run on each deployment. */
    readonly start?: Start;
    readonly provider?: Partial<SignInProvider>;
    readonly hasSecond?: boolean;
    /** Settings of the second provider. */
    readonly second?: Partial<SignInProvider>;
    readonly passwords?: boolean;
    readonly settings?: Overrides;
  } = {},
): WithUpstream {
  const { provider, hasSecond = false, second, passwords = true, settings = {}, start = startsOn() } = options;
  const parts = {} as { -readonly [Part in keyof WithUpstream]: WithUpstream[Part] };

  before('start the providers and the service, and seed it', async () => {
    const port = await freePort();
    const issuer = `http://localhost:${port}`;
    parts.clock = createTestClock();
    parts.upstream = await startUpstream(issuer);
    if (hasSecond) parts.second = await startUpstream(issuer, 'partner');
    const providers = [
      parts.upstream.settings(provider),
      ...(hasSecond ? [parts.second.settings({ label: 'Partner login', ...second })] : []),
    ];
    const signIn = { ...settings.signIn, passwords, providers };
    const begin: Start = (more) =>
      start({ ...more, clock: parts.clock.clock, settings: { ...settings, issuer, server: { port }, signIn } });
    Object.assign(parts, await startAndSeed(begin));
  });
  after('restore the real time', () => parts.clock?.restore());

  parts.providing = (changes, more = {}) => ({ signIn: { ...more, providers: [parts.upstream.settings(changes)] } });
  parts.traveller = () =>
    createTraveller(parts.service.issuer, parts.upstream.issuer, ...(hasSecond ? [parts.second.issuer] : []));
  parts.signIn = async (account, traveller = parts.traveller()) => {
    parts.upstream.account = account;
    const page = await traveller.get('/login');
    return traveller.travel(page.location ? page : await traveller.submit(page, WITH_PLATFORM));
  };
  return parts;
}
