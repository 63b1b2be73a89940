/** Wires how users sign in: with a password, with a passkey, at a provider or with a mailed link. */
import type { Context } from 'koa';
import type { Logger } from 'pino';
import { createComeIn } from '../accounts/identities/coming-in.ts';
import type { AccountMail } from '../accounts/mail/account-mail.ts';
import { createShownOnce } from '../accounts/shown-once.ts';
import { createSignIn } from '../accounts/sign-in.ts';
import { createSignInLimits } from '../accounts/sign-in-limits.ts';
import type { StrongerSignIns } from '../accounts/stronger-sign-ins.ts';
import { createWaysIn } from '../accounts/ways-in.ts';
import { createDisconnect } from '../authorizations/endings.ts';
import type { CreateAttemptLimit } from '../base/attempt-limits.ts';
import type { Clock } from '../base/clock.ts';
import type { Settings } from '../config/settings.ts';
import type { FormTokens } from '../host/form-token.ts';
import type { Metrics } from '../host/metrics/metrics.ts';
import type { ErrorPage } from '../pages/error-page/error-page.ts';
import { createFirstSignIn } from '../pages/first-sign-in/question.ts';
import { createKeptForms } from '../pages/forms/kept-forms.ts';
import { type Notices, visitorOf } from '../pages/page.ts';
import { FORGOT_PASSWORD } from '../pages/password/forgot-password.ts';
import { createEndingChoices } from '../pages/password/recovery.ts';
import { createBrowserSignIns } from '../pages/sign-in/browser-sign-ins.ts';
import { createDemands } from '../pages/sign-in/demands.ts';
import { createKnownDevices } from '../pages/sign-in/known-devices.ts';
import { createPasskeySignIns } from '../pages/sign-in/passkeys.ts';
import { createPasswordCheck, refusePasswords } from '../pages/sign-in/password-check.ts';
import { createWaitingSignIn } from '../pages/sign-in/waiting-sign-in.ts';
import { createArrival } from '../pages/upstream/arrival.ts';
import { createUpstreamFlows, LONGEST_SECONDS } from '../pages/upstream/flows.ts';
import { upstreamLogouts } from '../pages/upstream/logout.ts';
import { createNextPerson } from '../pages/upstream/next-person.ts';
import { createConfirm, createLink } from '../pages/upstream/own-account.ts';
import { createUpstreamSignIns } from '../pages/upstream/sign-in.ts';
import type { AuthorizationServer } from '../provider/provider.ts';
import type { SessionDemands } from '../provider/session-demands.ts';
import type { Database } from '../storage/queries.ts';
import type { TokenStore } from '../storage/token-store.ts';
import { createUpstreamProvider } from '../upstream/upstream-provider.ts';
import type { Registries } from './registries.ts';

export type SignInWiring = ReturnType<typeof wireSignIn>;

/** Sends no request to a provider yet. */
export function wireSignIn(parts: {
  readonly settings: Settings;
  readonly clock: Clock;
  readonly log: Logger;
  readonly database: Database;
  readonly store: TokenStore;
  readonly registries: Omit<Registries, 'close'>;
  readonly createAttemptLimit: CreateAttemptLimit;
  readonly outcomes: Metrics['outcomes'];
  readonly server: Pick<AuthorizationServer, 'interactions' | 'sessions'>;
  readonly strongerSignIns: StrongerSignIns;
  readonly sessionDemands: SessionDemands;
  readonly browserOf: FormTokens['browserOf'];
  readonly notices: Notices;
  readonly errorPage: ErrorPage;
  /** Undefined if the service sends no mail. */
  readonly mail: AccountMail | undefined;
}) {
  const { settings, clock, log, database, store, createAttemptLimit, outcomes } = parts;
  const { strongerSignIns, sessionDemands, browserOf, notices, errorPage, mail } = parts;
  const { accounts, activity, apiKeys, connections, identities } = parts.registries;
  const { passkeys, passwordLinks, sessionList, takenNames, upstreamSessions } = parts.registries;
  const { interactions, sessions } = parts.server;
  const { issuer, limits } = settings;
  const { passwords } = settings.signIn;
  const keys = settings.secrets.cookieKeys;

  const hourlyLimit = (name: string, attempts: number) =>
    createAttemptLimit({
      name,
      attempts,
      windowSeconds: 3_600,
      onStoreUnavailable: 'count here',
      log,
    });
  const devices = createKnownDevices({ issuer, keys, clock });
  const signIns = createBrowserSignIns({ sessions, activity, outcomes, devices, mail });
  const waiting = createWaitingSignIn({ issuer, interactions });
  const demands = createDemands({
    strongerSignIns,
    providers: settings.signIn.providers,
    sessionDemands,
    sessions,
    waiting,
  });
  const disconnect = createDisconnect(connections, activity);
  const waysIn = createWaysIn({
    database,
    accounts,
    activity,
    kinds: [
      identities.waysOf(settings.signIn.providers),
      passkeys.waysOf(settings.signIn.passkeys),
    ],
  });
  const endingChoices = createEndingChoices({ connections, disconnect, apiKeys, waysIn });
  const keptForms = createKeptForms({
    issuer,
    log,
    shownOnce: createShownOnce({ store, clock, seconds: 3_600 }),
    limit: hourlyLimit('kept_forms', 200),
  });

  // With a password
  const forgotPasswordUrl = passwords && mail ? FORGOT_PASSWORD : undefined;
  const checkPassword = passwords
    ? createPasswordCheck({
        accounts,
        activity,
        devices,
        log,
        outcomes,
        forgotPasswordUrl,
        signIn: createSignIn({ database }),
        limits: createSignInLimits({ settings: limits, createAttemptLimit, log }),
      })
    : refusePasswords;

  // With a passkey
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
      })
    : undefined;

  // At a provider
  const providers = settings.signIn.providers.map((provider) =>
    createUpstreamProvider({ issuer, settings: provider, clock }),
  );
  const { comeIn, linkTo } = createComeIn({
    database,
    accounts,
    identities,
    activity,
    takenNames,
  });
  const firstSignIn = createFirstSignIn({
    passwords,
    keptForms,
    sessionList,
    sessions,
    endingChoices,
  });
  const arrive = createArrival({
    comeIn,
    link: createLink({
      visitorOf: (ctx: Context) => visitorOf(ctx, { sessions, accounts }),
      linkTo,
      mail,
      demands,
    }),
    confirm: createConfirm({ identities, activity }),
    demands,
    passwordLinks,
    signIns,
    firstSignIn,
    waiting,
    notices,
    outcomes,
  });
  const flows = createUpstreamFlows({
    issuer,
    kept: createShownOnce({ store, clock, seconds: LONGEST_SECONDS }),
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
    nextPerson: createNextPerson(issuer, providerIds),
    arrive,
    identities,
    errorPage,
    outcomes,
  });
  const logouts = upstreamLogouts({
    providers,
    log,
    upstreamSessions,
    endSession: store.removeSessionByUid,
    disconnect,
    activity,
    failures: createAttemptLimit({
      name: 'upstream_logouts',
      attempts: limits.clientFailuresPerAddress,
      windowSeconds: limits.clientFailureWindowSeconds,
      onStoreUnavailable: 'count here',
      log,
    }),
    outcomes,
  });

  return {
    /** How users of this service can sign in. */
    offered: { passwords, forgotPasswordUrl, upstream, passkeys: passkeySignIns },
    /** The routes by which providers say that a user signed out there. */
    upstreamLogouts: logouts,
    checkPassword,
    demands,
    disconnect,
    endingChoices,
    firstSignIn,
    hourlyLimit,
    keptForms,
    signIns,
    waiting,
    waysIn,
  };
}
