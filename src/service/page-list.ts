/** Lists all pages. Add a new page here; the page itself declares which requests it answers. */
import type { AccountMail } from '../accounts/mail/account-mail.ts';
import type { OneTimeValues } from '../accounts/one-time-values.ts';
import type { PasswordLinkRequests } from '../accounts/password-links/link-mail.ts';
import { createPasswordChanges } from '../accounts/password-links/password-changes.ts';
import type { Endings } from '../authorizations/endings.ts';
import { createOrganizationEndings } from '../authorizations/organization-endings.ts';
import { createOrganizationEnds } from '../authorizations/organization-ends.ts';
import { createOrganizationReach } from '../authorizations/organization-reach.ts';
import type { Clock } from '../base/clock.ts';
import { createNetworkCheck } from '../base/network-address.ts';
import type { Seals } from '../base/seals.ts';
import { createTestOrganizations } from '../changes/test-organizations.ts';
import type { Settings } from '../config/settings.ts';
import { createApiCalls } from '../host/api-calls.ts';
import { activityPage } from '../pages/activity.ts';
import { apiKeyLimitPage } from '../pages/api-key-limit.ts';
import { apiKeysPage } from '../pages/api-keys.ts';
import { connectionsPage } from '../pages/connections.ts';
import type { ErrorPage } from '../pages/error-page/error-page.ts';
import { errorReferencePage } from '../pages/error-reference.ts';
import { createConsentSteps } from '../pages/interaction/consent.ts';
import { interactionPage } from '../pages/interaction/interaction.ts';
import { languagePage } from '../pages/language.ts';
import { clientPage, clientRequestsPage } from '../pages/oauth-clients/client.ts';
import { connectPage } from '../pages/oauth-clients/connect.ts';
import { deleteClientPage } from '../pages/oauth-clients/delete.ts';
import { clientLinksPage } from '../pages/oauth-clients/links.ts';
import { newClientPage } from '../pages/oauth-clients/new.ts';
import { clientListPage } from '../pages/oauth-clients/oauth-clients.ts';
import { createOwnClientPages } from '../pages/oauth-clients/own-client.ts';
import { clientProblemsPage } from '../pages/oauth-clients/problems.ts';
import { renewClientPage } from '../pages/oauth-clients/renew.ts';
import { clientCreatedPage, clientSecretsPage } from '../pages/oauth-clients/secrets.ts';
import { clientSettingsPage } from '../pages/oauth-clients/settings.ts';
import { clientTestCallback, clientTestPage } from '../pages/oauth-clients/test.ts';
import { createClientTestRunner } from '../pages/oauth-clients/test-run.ts';
import { organizationsPage } from '../pages/organizations/organizations.ts';
import { isSignedInAs } from '../pages/page.ts';
import type { PageKit } from '../pages/page-kit.ts';
import { passkeysPage } from '../pages/passkeys/passkeys.ts';
import { forgotPasswordPage } from '../pages/password/forgot-password.ts';
import { passwordPage } from '../pages/password/password.ts';
import { profilePage } from '../pages/profile.ts';
import type { PostForm, Route } from '../pages/routes.ts';
import { securityPage } from '../pages/security/security.ts';
import { createSessionsSection } from '../pages/security/sessions.ts';
import { createSignInMethodsPart } from '../pages/security/sign-in-methods.ts';
import { firstSignInPage } from '../pages/security/what-has-access.ts';
import { createNeededMethods } from '../pages/sign-in/attempt.ts';
import { createSignInSteps, signInPage } from '../pages/sign-in/sign-in.ts';
import { signOutPage } from '../pages/sign-in/sign-out.ts';
import { upstreamPages } from '../pages/sign-in/upstream-providers.ts';
import { strongSignInPage } from '../pages/strong-sign-in.ts';
import type { AuthorizationServer } from '../provider/provider.ts';
import type { Standings } from '../provider/standings.ts';
import type { Database } from '../storage/queries.ts';
import type { CommonRegistries } from './common-registries.ts';
import type { SignInWiring } from './sign-in.ts';

/** @returns the routes of all pages, in the order in which they are tried. */
export function listPages(parts: {
  readonly settings: Settings;
  readonly clock: Clock;
  readonly database: Database;
  readonly registries: Omit<CommonRegistries, 'close'>;
  readonly endings: Endings;
  readonly server: AuthorizationServer;
  readonly signIn: SignInWiring;
  readonly standings: Standings;
  readonly kit: PageKit;
  readonly errorPage: ErrorPage;
  readonly mail: AccountMail | undefined;
  readonly linkRequests: PasswordLinkRequests | undefined;
  readonly oneTimeValues: OneTimeValues;
  /** Seals the values that a page showed and that its form sends back. */
  readonly seals: Seals;
  readonly postForm: PostForm;
}): Route[] {
  const { settings, clock, database, endings, standings, kit } = parts;
  const { errorPage, mail, linkRequests, oneTimeValues, seals, postForm } = parts;
  const { accounts, access, activity, apiKeys, clients } = parts.registries;
  const { clientStandings, engine } = parts.registries;
  const { clientNetworks, clientRequests, connections, passkeys, passwordLinks } = parts.registries;
  const { removeClient, requestStreams, sessionList } = parts.registries;
  const { interactions, sessions, authorizations, clientTests } = parts.server;
  const { enabled, checkPassword, continueIfSatisfied, disconnect, endingChoices } = parts.signIn;
  const { hourlyLimit, formDrafts, signIns, waiting, signInMethods } = parts.signIn;
  const { issuer, limits, tokens: lifetimes } = settings;
  const { passwords, upstream } = enabled;
  const { clientsPerPerson } = limits;
  const { secretGraceSeconds: graceSeconds } = settings.leaks;
  const api = settings.api && { ...settings.api, call: createApiCalls(settings.api) };

  const signInSteps = createSignInSteps({
    kit,
    enabled,
    formDrafts,
    sessions,
    checkPassword,
    standings,
    signInMethods,
    activity,
    signIns,
    interactions,
    waiting,
  });
  const consent = createConsentSteps({
    kit,
    clock,
    access,
    clientStandings,
    connections,
    interactions,
    seals,
  });

  const passwordChanges = createPasswordChanges({
    accounts,
    links: passwordLinks,
    activity,
  });
  const neededMethods = createNeededMethods({ standings, signInMethods });

  const own = createOwnClientPages({ kit, clients, clientRequests, activity });
  const ids = settings.api?.testOrganizations ?? [];
  const testOrganizations = createTestOrganizations({ database, engine, access, ids });
  const runTest = createClientTestRunner({
    issuer,
    api,
    postForm,
    retryWindow: lifetimes.retryWindowSeconds,
    clientTests,
    authorizations,
    endings,
  });

  const sessionsSection = createSessionsSection({
    kit,
    accounts,
    activity,
    sessions,
    sessionList,
    signIns,
  });
  const organizationEndings = createOrganizationEndings({
    activity,
    ends: createOrganizationEnds({ database, engine, access, clock }),
  });

  return [
    interactionPage({
      kit,
      interactions,
      errorPage,
      waiting,
      signIn: signInSteps,
      consent,
      upstream,
    }),
    signInPage({ kit, steps: signInSteps }),
    upstreamPages(upstream),
    signOutPage({
      kit,
      issuer,
      sessions,
      isShared: createNetworkCheck(settings.sessions.sharedTerminals),
      upstream,
    }),
    languagePage({ kit, issuer, accounts }),
    passwordPage({
      kit,
      issuer,
      passwordLinks,
      passwordChanges,
      enabled,
      formDrafts,
      waiting,
      endingChoices,
      neededMethods,
      standings,
      signIns,
      mail,
    }),
    linkRequests
      ? forgotPasswordPage({
          kit,
          waiting,
          linkRequests,
          perAddress: hourlyLimit('forgot_address', 30),
        })
      : [],
    profilePage({ kit, access, activity, connections, enabled, signInMethods }),
    clientListPage({ kit, clients, clientRequests, limit: clientsPerPerson }),
    newClientPage({ kit, clients, activity, oneTimeValues, limit: clientsPerPerson }),
    clientPage({ kit, own, clientRequests }),
    clientRequestsPage({
      kit,
      own,
      clients,
      clientRequests,
      requestStreams,
      isStillSignedIn: (ctx, accountId) => isSignedInAs(ctx, accountId, { sessions, standings }),
    }),
    connectPage({ kit, own, issuer, api }),
    clientSettingsPage({ kit, own, clients }),
    clientSecretsPage({ kit, own, clock, clients, clientNetworks, oneTimeValues, graceSeconds }),
    renewClientPage({ kit, own, clients, oneTimeValues, mail }),
    clientProblemsPage({ kit, own, clientRequests }),
    clientCreatedPage({ kit, own, oneTimeValues, issuer, api }),
    clientTestCallback({ kit, clients, activity, clientTests, oneTimeValues, runTest }),
    clientTestPage({ kit, own, access, clientTests, oneTimeValues, testOrganizations }),
    clientLinksPage({ kit, own, clients }),
    deleteClientPage({ kit, own, removeClient, activity }),
    connectionsPage({
      kit,
      clock,
      access,
      clientStandings,
      connections,
      activity,
      disconnect,
    }),
    organizationsPage({
      kit,
      clock,
      access,
      clientStandings,
      organizationEndings,
      seals,
      organizationReach: createOrganizationReach({ database, clock }),
    }),
    apiKeyLimitPage({ kit, clock, access, apiKeys }),
    apiKeysPage({ kit, clock, access, apiKeys, oneTimeValues, mail, limits }),
    activityPage({ kit, activity }),
    securityPage({
      kit,
      accounts,
      connections,
      sessionsSection,
      signInMethodsPart: createSignInMethodsPart({
        kit,
        enabled,
        signInMethods,
        passkeys,
        signIns,
      }),
      sendsMail: mail !== undefined,
      passwords,
      checkPassword,
      passwordChanges,
      disconnect,
      signIns,
    }),
    firstSignInPage({ kit, signInMethods, endingChoices, formDrafts, signIns, passwords }),
    strongSignInPage({ kit, signInMethods, enabled }),
    enabled.passkeys ? passkeysPage({ kit, passkeySignIns: enabled.passkeys, passkeys, continueIfSatisfied }) : [],
    errorReferencePage({ kit, issuer, lifetimes }),
  ].flat();
}
