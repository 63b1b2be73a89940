/** Lists all pages. Add a new page here. The page itself declares which requests it answers. */
import type { AccountMail } from '../accounts/mail/account-mail.ts';
import type { OneTimeValues } from '../accounts/one-time-values.ts';
import type { PasswordLinkRequests } from '../accounts/password-links/link-mail.ts';
import { createPasswordChanges } from '../accounts/password-links/password-changes.ts';
import type { Endings } from '../authorizations/endings.ts';
import { createOrganizationEndings } from '../authorizations/organization-endings.ts';
import { createOrganizationReach } from '../authorizations/organization-reach.ts';
import type { NetworkCheck } from '../base/network-address.ts';
import type { Seals } from '../base/seals.ts';
import { createTestOrganizations } from '../changes/test-organizations.ts';
import { activityPage } from '../pages/activity.ts';
import { apiKeysPage } from '../pages/api-keys.ts';
import { connectionsPage } from '../pages/connections.ts';
import type { ErrorPage } from '../pages/error-page/error-page.ts';
import { errorReferencePage } from '../pages/error-reference.ts';
import { createConsentSteps } from '../pages/interaction/consent.ts';
import { interactionPage } from '../pages/interaction/interaction.ts';
import { languagePage } from '../pages/language.ts';
import { clientPage } from '../pages/oauth-clients/client.ts';
import { connectPage } from '../pages/oauth-clients/connect.ts';
import { clientEndingPages } from '../pages/oauth-clients/endings.ts';
import { clientLinksPage } from '../pages/oauth-clients/links.ts';
import { newClientPage } from '../pages/oauth-clients/new.ts';
import { clientListPage } from '../pages/oauth-clients/oauth-clients.ts';
import { createOwnClientPages } from '../pages/oauth-clients/own-client.ts';
import { clientSecretsPage } from '../pages/oauth-clients/secrets.ts';
import { clientSettingsPage } from '../pages/oauth-clients/settings.ts';
import { testOrganizationsPage } from '../pages/oauth-clients/test-organizations.ts';
import { organizationsPage } from '../pages/organizations/organizations.ts';
import type { PageKit } from '../pages/page-kit.ts';
import { passkeysPage } from '../pages/passkeys/passkeys.ts';
import { forgotPasswordPage } from '../pages/password/forgot-password.ts';
import { passwordPage } from '../pages/password/password.ts';
import { profilePage } from '../pages/profile.ts';
import type { Route } from '../pages/routes.ts';
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
import type { NodeParts } from './common-registries.ts';
import type { SignInWiring } from './sign-in.ts';

/** @returns the routes of all pages, in the order in which they are tried */
export function listPages(
  parts: NodeParts & {
    readonly endings: Endings;
    readonly server: AuthorizationServer;
    readonly signIn: SignInWiring;
    readonly standings: Standings;
    readonly isShared: NetworkCheck;
    readonly kit: PageKit;
    readonly errorPage: ErrorPage;
    readonly mail: AccountMail | undefined;
    readonly linkRequests: PasswordLinkRequests | undefined;
    readonly oneTimeValues: OneTimeValues;
    /** Seals values that a page shows and that its form sends back. */
    readonly seals: Seals;
  },
): Route[] {
  const { settings, mail, linkRequests } = parts;
  const { issuer, limits, tokens: lifetimes } = settings;
  const { enabled, hourlyLimit } = parts.signIn;
  const { passwords, upstream } = enabled;
  const { signIn: signInWiring, registries, server, ...others } = parts;
  // Spread `registries` last: pages need the `engine` of `registries`, not the `engine` of `server`.
  const engines = { ...server, ...registries };
  const all = { ...engines, ...signInWiring, ...others, issuer, limits, passwords, upstream, api: settings.api };

  const passwordChanges = createPasswordChanges({ ...all, links: all.passwordLinks });
  const neededMethods = createNeededMethods(all);
  const organizationEndings = createOrganizationEndings(all);

  const signInSteps = createSignInSteps(all);
  const testOrganizations = createTestOrganizations({ ...all, ids: settings.api?.testOrganizations ?? [] });
  /** The parts of the pages about one client. */
  const own = {
    ...all,
    own: createOwnClientPages(all),
    testOrganizations,
    graceSeconds: settings.leaks.secretGraceSeconds,
  };
  const limit = limits.clientsPerPerson;

  return [
    interactionPage({ ...all, signIn: signInSteps, consent: createConsentSteps(all) }),
    signInPage({ ...all, steps: signInSteps }),
    upstreamPages(upstream),
    signOutPage(all),
    languagePage(all),
    passwordPage({ ...all, passwordChanges, neededMethods }),
    linkRequests ? forgotPasswordPage({ ...all, linkRequests, perAddress: hourlyLimit('forgot_address', 30) }) : [],
    profilePage(all),
    clientListPage({ ...all, limit }),
    newClientPage({ ...all, limit }),
    clientPage(own),
    connectPage(own),
    clientSettingsPage(own),
    clientSecretsPage(own),
    testOrganizationsPage(own),
    clientLinksPage(own),
    clientEndingPages(own),
    connectionsPage(all),
    organizationsPage({ ...all, organizationEndings, organizationReach: createOrganizationReach(all) }),
    apiKeysPage(all),
    activityPage(all),
    securityPage({
      ...all,
      passwordChanges,
      sessionsSection: createSessionsSection(all),
      signInMethodsPart: createSignInMethodsPart(all),
      sendsMail: mail !== undefined,
    }),
    firstSignInPage(all),
    strongSignInPage(all),
    enabled.passkeys ? passkeysPage({ ...all, passkeySignIns: enabled.passkeys }) : [],
    errorReferencePage({ ...all, lifetimes }),
  ].flat();
}
