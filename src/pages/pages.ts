/** The list of all pages. A new one stands here, and says itself which requests it answers. */
import { requireNavigation } from '../provider/cross-origin.ts';
import { activityPage } from './activity.ts';
import { apiKeysPage } from './api-keys.ts';
import { connectionsPage } from './connections.ts';
import { errorReferencePage } from './error-reference.ts';
import { firstSignInPage } from './first-sign-in/first-sign-in.ts';
import { interactionPage } from './interaction/interaction.ts';
import { oauthClientsPage } from './oauth-clients/oauth-clients.ts';
import { organizationsPage } from './organizations/organizations.ts';
import { passkeysPage } from './passkeys/passkeys.ts';
import { forgotPasswordPage } from './password/forgot-password.ts';
import { passwordPage } from './password/password.ts';
import { profilePage } from './profile.ts';
import { get, type PageParts, type Route } from './routes.ts';
import { securityPage } from './security.ts';
import { signInPage } from './sign-in/sign-in.ts';
import { signOutPage } from './sign-in/sign-out.ts';
import { strongerSignInPage } from './stronger-sign-in.ts';

/** Of each provider that people come from. */
const upstreamPages = ({ upstream }: PageParts): Route[] =>
  upstream.answers.flatMap(({ id, begin, finish }) => [
    get(`/login/${id}`, requireNavigation, begin),
    get(`/login/${id}/callback`, finish),
  ]);

const PAGES: readonly ((parts: PageParts) => Route[])[] = [
  interactionPage,
  signInPage,
  upstreamPages,
  signOutPage,
  passwordPage,
  forgotPasswordPage,
  profilePage,
  oauthClientsPage,
  connectionsPage,
  organizationsPage,
  apiKeysPage,
  activityPage,
  securityPage,
  firstSignInPage,
  strongerSignInPage,
  passkeysPage,
  errorReferencePage,
];

export const routesOfPages = (parts: PageParts): Route[] => PAGES.flatMap((page) => page(parts));
