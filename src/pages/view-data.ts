/** What each view is given: one object called `page` per view, checked where the page builds it. */
import type { Context } from 'koa';
import type { ActivityView } from './activity-view.ts';
import type { ApiKeysView } from './api-keys-view.ts';
import type { ConnectionsView, ConnectionView } from './connections-view.ts';
import type { OAuthClientTestView } from './oauth-clients/test-view.ts';
import type {
  OAuthClientDeleteView,
  OAuthClientNewView,
  OAuthClientsView,
  OAuthClientView,
} from './oauth-clients/view.ts';
import type { ForgotPasswordView, PasswordLinkOverView, PasswordView } from './password-view.ts';
import type { ConfirmView, ProfileView, SecretShownView } from './profile-view.ts';
import type { SecurityView } from './security-view.ts';

/** The views of `views/`, by file name, and the data each one prints. */
export interface ViewData {
  readonly 'sign-in': SignInView;
  readonly consent: ConsentView;
  readonly 'confirm-password': ConfirmPasswordView;
  readonly profile: ProfileView;
  readonly 'oauth-clients': OAuthClientsView;
  readonly 'oauth-client-new': OAuthClientNewView;
  readonly 'oauth-client': OAuthClientView;
  readonly 'oauth-client-delete': OAuthClientDeleteView;
  readonly 'oauth-client-test': OAuthClientTestView;
  readonly connections: ConnectionsView;
  readonly connection: ConnectionView;
  readonly 'api-keys': ApiKeysView;
  readonly 'secret-shown': SecretShownView;
  readonly activity: ActivityView;
  readonly security: SecurityView;
  readonly confirm: ConfirmView;
  readonly password: PasswordView;
  readonly 'password-link-over': PasswordLinkOverView;
  readonly 'forgot-password': ForgotPasswordView;
  readonly 'sign-out': SignOutView;
  readonly 'signed-out': SignedOutView;
  readonly error: ErrorView;
  readonly 'error-reference': ErrorReferenceView;
  readonly 'error-reference-index': ErrorReferenceIndexView;
}

export type ViewName = keyof ViewData;

/**
 * Answers a request with a view: `text/html` in the response body. The status stays the caller's.
 *
 * Pages are handed this function, because they may not import the host.
 */
export type Render = <Name extends ViewName>(
  ctx: Context,
  name: Name,
  page: ViewData[Name],
) => Promise<void>;

export interface SignInView {
  readonly title: string;
  /** Where the form posts to. */
  readonly action: string;
  /** What was typed before, or empty. */
  readonly email: string;
  /** A sentence for the person, shown as an alert; absent on the first try. */
  readonly problem?: string;
  /** The client that sent the person here; absent when they came by themselves. */
  readonly client?: { readonly name: string };
  /** Offers a way back to the client: a button `name="decision" value="deny"`. */
  readonly cancel?: boolean;
  /** What was done on the way here, such as setting a password. */
  readonly notice?: string;
  /** Absent where no mail is sent. */
  readonly forgotPasswordUrl?: string;
}

export interface ConfirmPasswordView {
  /** The form that was sent, which is sent again with the password. */
  readonly action: string;
  readonly email: string;
  /** Its fields, sent along hidden. */
  readonly carried: readonly { readonly name: string; readonly value: string }[];
  readonly problem?: string;
}

export interface ConsentView {
  readonly action: string;
  readonly client: {
    readonly name: string;
    /** The owner's name, or 'the operator'. */
    readonly providedBy: string;
    readonly providedByOperator: boolean;
  };
  readonly account: AccountSummary;
  readonly redirect: {
    /** As `URL.host` writes it (punycode); empty for a private-use scheme. */
    readonly host: string;
    readonly uri: string;
  };
  readonly organizations: readonly ReachedOrganization[];
  /** What the page shows, sealed: it is what Approve stands for. */
  readonly shown: string;
  /** The person approved this client before and is asked again. */
  readonly isRepeat: boolean;
  /** Sentences: what is different from the page they approved a moment ago, if it is. */
  readonly changes: readonly string[];
}

export interface SignOutView {
  readonly account: AccountSummary;
}

export interface SignedOutView {
  readonly title: string;
}

export interface ErrorView {
  /** The HTTP status, shown small. */
  readonly status: number;
  readonly heading: string;
  readonly explanation: string;
  readonly advice: string;
  /** What was filled in and is not done, so that it is not lost. */
  readonly typed: readonly { readonly label: string; readonly value: string }[];
  /** Ways on; the first is the one most people want. */
  readonly links: readonly { readonly href: string; readonly label: string }[];
  readonly requestId: string;
}

export interface ErrorReferenceView {
  /** The `error` member of the answer. */
  readonly code: string;
  readonly title: string;
  readonly meaning: string;
  readonly causes: readonly ErrorCause[];
}

export interface ErrorCause {
  readonly cause: string;
  readonly remedy: string;
}

export interface ErrorReferenceIndexView {
  readonly title: string;
  readonly errors: readonly Pick<ErrorReferenceView, 'code' | 'title'>[];
}

export interface AccountSummary {
  readonly name: string;
  readonly email: string;
}

/** An organization a person reaches now, in the shape `accessOf` gives. */
export interface ReachedOrganization {
  readonly name: string;
  readonly role: string;
  readonly change?: AccessChange;
  readonly warehouses: readonly {
    readonly name: string;
    readonly rights: readonly string[];
    readonly change?: AccessChange;
  }[];
}

/** What is different from what the person approved. */
export interface AccessChange {
  readonly kind: 'added' | 'removed' | 'changed';
  /** `no longer`, `was member` */
  readonly words: string;
}
