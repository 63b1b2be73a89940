/** Creates the sign-in methods: password, passkey, provider and mailed link. */
import { createResolveIdentity } from '../accounts/identities/resolve-identity.ts';
import type { AccountMail } from '../accounts/mail/account-mail.ts';
import { createOneTimeValues } from '../accounts/one-time-values.ts';
import { createSignIn } from '../accounts/password-sign-in.ts';
import { createSignInLimits } from '../accounts/sign-in-limits.ts';
import { createSignInMethods } from '../accounts/sign-in-methods.ts';
import type { StrongSignIns } from '../accounts/strong-sign-ins.ts';
import { createDisconnect } from '../authorizations/endings.ts';
import type { NetworkCheck } from '../base/network-address.ts';
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
import { createUpstreamProvider } from '../upstream/upstream-provider.ts';
import type { NodeParts } from './common-registries.ts';

export type SignInWiring = ReturnType<typeof wireSignIn>;

/** Creates the sign-in methods, and sends no requests to providers yet. */
export function wireSignIn(
  parts: NodeParts & {
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
  },
) {
  const { settings, clock, log, store, createAttemptLimit, isShared, standings, mail, registries } = parts;
  const { identities, passkeys } = registries;
  const { issuer, limits } = settings;
  const { passwords, providers } = settings.signIn;
  const all = { ...registries, ...parts, ...parts.server, issuer, passwords };

  const hourlyLimit = (name: string, attempts: number) =>
    createAttemptLimit({ name, attempts, windowSeconds: 3_600, onStoreUnavailable: 'count here' });
  const signIns = createBrowserSignIns(all);
  const waiting = createWaitingSignIn(all);
  const continueIfSatisfied = createContinueIfSatisfied({ ...all, providers, waiting });
  const mayAdd = createMayAdd(standings);
  const disconnect = createDisconnect(all.connections, all.activity);
  const signInMethods = createSignInMethods({
    ...all,
    kinds: [identities.listMethods(providers), passkeys.listMethods(settings.signIn.passkeys)],
  });
  const formDrafts = createFormDrafts({
    issuer,
    log,
    oneTimeValues: createOneTimeValues({ store, clock, seconds: 3_600 }),
    limit: hourlyLimit('kept_forms', 200),
  });
  const endingChoices = createEndingChoices({ ...all, disconnect, signInMethods, formDrafts });

  const forgotPasswordUrl = passwords && mail ? FORGOT_PASSWORD : undefined;
  const checkPassword = passwords
    ? createPasswordCheck({
        ...all,
        forgotPasswordUrl,
        signIn: createSignIn(all),
        limits: createSignInLimits({ settings: limits, createAttemptLimit }),
      })
    : refusePasswords;

  const passkeySignIns = settings.signIn.passkeys ? createPasskeySignIns({ ...all, mayAdd }) : undefined;

  const upstreamProviders = providers.map((provider) => createUpstreamProvider({ issuer, settings: provider, clock }));
  const arrive = createArrival({
    ...all,
    ...createResolveIdentity(all),
    signedInOf: (ctx) => signedInOf(ctx, all),
    mayAdd,
    continueIfSatisfied,
    signIns,
    endingChoices,
    waiting,
  });
  const flows = createUpstreamFlows({
    issuer,
    kept: createOneTimeValues({ store, clock, seconds: LONGEST_SECONDS }),
    waiting: createAttemptLimit({
      name: 'upstream_sign_ins',
      attempts: limits.waitingSignInsPerAddress,
      windowSeconds: LONGEST_SECONDS,
      onStoreUnavailable: 'count here',
    }),
  });
  const providerIds = providers.map(({ id }) => id);
  const nextPerson = createNextPerson(issuer, providerIds, isShared);
  const upstream = createUpstreamSignIns({ ...all, providers: upstreamProviders, flows, nextPerson, arrive });

  return {
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
