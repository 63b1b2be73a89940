/** Wires the sign-in methods: password, passkey, provider and mailed link. */
import type { Logger } from 'pino';
import { createResolveIdentity } from '../accounts/identities/resolve-identity.ts';
import type { AccountMail } from '../accounts/mail/account-mail.ts';
import { createOneTimeValues } from '../accounts/one-time-values.ts';
import { createSignIn } from '../accounts/password-sign-in.ts';
import { createSignInLimits } from '../accounts/sign-in-limits.ts';
import { createSignInMethods } from '../accounts/sign-in-methods.ts';
import type { StrongSignIns } from '../accounts/strong-sign-ins.ts';
import { createDisconnect } from '../authorizations/endings.ts';
import type { CreateAttemptLimit } from '../base/attempt-limits.ts';
import type { Clock } from '../base/clock.ts';
import type { NetworkCheck } from '../base/network-address.ts';
import type { Settings } from '../config/settings.ts';
import type { FormTokens } from '../host/form-token.ts';
import type { Metrics } from '../host/metrics/metrics.ts';
import type { ErrorPage } from '../pages/error-page/error-page.ts';
import { createFormDrafts } from '../pages/forms/form-drafts.ts';
import { type Notices, signedInOf } from '../pages/page.ts';
import { FORGOT_PASSWORD } from '../pages/password/forgot-password.ts';
import { createEndingChoices } from '../pages/security/what-has-access.ts';
import { createBrowserSignIns } from '../pages/sign-in/browser-sign-ins.ts';
import type { KnownDevices } from '../pages/sign-in/known-devices.ts';
import { createPasskeySignIns } from '../pages/sign-in/passkey-sign-ins.ts';
import { createPasswordCheck, refusePasswords } from '../pages/sign-in/password-check.ts';
import { createContinueIfSatisfied, createMayAdd } from '../pages/sign-in/sign-in-policy.ts';
import { createWaitingSignIn } from '../pages/sign-in/waiting-sign-in.ts';
import { createArrival } from '../pages/upstream/arrival.ts';
import { createUpstreamFlows, LONGEST_SECONDS } from '../pages/upstream/flows.ts';
import { createNextPerson } from '../pages/upstream/next-person.ts';
import { createUpstreamSignIns } from '../pages/upstream/sign-in.ts';
import type { AuthorizationServer } from '../provider/provider.ts';
import type { Standings } from '../provider/standings.ts';
import type { Database } from '../storage/queries.ts';
import type { TokenStore } from '../storage/token-store.ts';
import { createUpstreamProvider } from '../upstream/upstream-provider.ts';
import type { CommonRegistries } from './common-registries.ts';

export type SignInWiring = ReturnType<typeof wireSignIn>;

/** Wires all sign-in methods. Sends no requests to providers yet. */
export function wireSignIn(parts: {
  readonly settings: Settings;
  readonly clock: Clock;
  readonly log: Logger;
  readonly database: Database;
  readonly store: TokenStore;
  readonly registries: Omit<CommonRegistries, 'close'>;
  readonly createAttemptLimit: CreateAttemptLimit;
  readonly outcomes: Metrics['outcomes'];
  readonly server: Pick<AuthorizationServer, 'interactions' | 'sessions'>;
  readonly isShared: NetworkCheck;
  readonly devices: KnownDevices;
  readonly standings: Standings;
  readonly endGrace: StrongSignIns['endGrace'];
  readonly browserOf: FormTokens['browserOf'];
  readonly notices: Notices;
  readonly errorPage: ErrorPage;
  /** Undefined if the service sends no mail. */
  readonly mail: AccountMail | undefined;
}) {
  const { settings, clock, log, database, store, createAttemptLimit, outcomes } = parts;
  const { isShared, devices, standings, endGrace, browserOf, notices, errorPage, mail } = parts;
  const { accounts, activity, apiKeys, connections, identities } = parts.registries;
  const { passkeys, passwordLinks, sessionList } = parts.registries;
  const { interactions, sessions } = parts.server;
  const { issuer, limits } = settings;
  const { passwords } = settings.signIn;

  const hourlyLimit = (name: string, attempts: number) =>
    createAttemptLimit({
      name,
      attempts,
      windowSeconds: 3_600,
      onStoreUnavailable: 'count here',
      log,
    });
  const signIns = createBrowserSignIns({ sessions, activity, outcomes, devices, mail });
  const waiting = createWaitingSignIn({ issuer, interactions });
  const continueIfSatisfied = createContinueIfSatisfied({
    providers: settings.signIn.providers,
    sessions,
    waiting,
  });
  const mayAdd = createMayAdd(standings);
  const disconnect = createDisconnect(connections, activity);
  const signInMethods = createSignInMethods({
    accounts,
    activity,
    kinds: [identities.listMethods(settings.signIn.providers), passkeys.listMethods(settings.signIn.passkeys)],
  });
  const formDrafts = createFormDrafts({
    issuer,
    log,
    oneTimeValues: createOneTimeValues({ store, clock, seconds: 3_600 }),
    limit: hourlyLimit('kept_forms', 200),
  });
  const endingChoices = createEndingChoices({
    passwords,
    connections,
    disconnect,
    apiKeys,
    signInMethods,
    standings,
    endGrace,
    sessionList,
    sessions,
    formDrafts,
  });

  // Create the sign-in with a password.
  const forgotPasswordUrl = passwords && mail ? FORGOT_PASSWORD : undefined;
  const checkPassword = passwords
    ? createPasswordCheck({
        accounts,
        activity,
        devices,
        log,
        outcomes,
        forgotPasswordUrl,
        signIn: createSignIn({ database, log }),
        limits: createSignInLimits({ settings: limits, createAttemptLimit, log }),
      })
    : refusePasswords;

  // Create the sign-in with a passkey.
  const passkeySignIns = settings.signIn.passkeys
    ? createPasskeySignIns({
        settings,
        clock,
        log,
        passkeys,
        activity,
        createAttemptLimit,
        outcomes,
        mail,
        browserOf,
        mayAdd,
      })
    : undefined;

  // Create the sign-in with a provider.
  const providers = settings.signIn.providers.map((provider) =>
    createUpstreamProvider({ issuer, settings: provider, clock }),
  );
  const { resolveIdentity, linkIdentity } = createResolveIdentity({ database, identities, activity });
  const arrive = createArrival({
    signedInOf: (ctx) => signedInOf(ctx, { sessions, standings }),
    resolveIdentity,
    linkIdentity,
    identities,
    mayAdd,
    standings,
    continueIfSatisfied,
    passwordLinks,
    signIns,
    endingChoices,
    waiting,
    activity,
    mail,
    notices,
    outcomes,
  });
  const flows = createUpstreamFlows({
    issuer,
    kept: createOneTimeValues({ store, clock, seconds: LONGEST_SECONDS }),
    waiting: createAttemptLimit({
      name: 'upstream_sign_ins',
      attempts: limits.waitingSignInsPerAddress,
      windowSeconds: LONGEST_SECONDS,
      onStoreUnavailable: 'count here',
      log,
    }),
  });
  const providerIds = settings.signIn.providers.map(({ id }) => id);
  const upstream = createUpstreamSignIns({
    clock,
    log,
    providers,
    passwords,
    flows,
    nextPerson: createNextPerson(issuer, providerIds, isShared),
    arrive,
    identities,
    errorPage,
    notices,
    outcomes,
  });

  return {
    /** The sign-in methods that this service offers. */
    enabled: { passwords, forgotPasswordUrl, upstream, passkeys: passkeySignIns },
    checkPassword,
    continueIfSatisfied,
    disconnect,
    endingChoices,
    hourlyLimit,
    formDrafts,
    signIns,
    waiting,
    signInMethods,
  };
}
