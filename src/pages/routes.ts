/** What a page is made of: what it is given, and how it says which requests it answers. */
import type { Context, Middleware, Next } from 'koa';
import type { Access } from '../accounts/access/access.ts';
import type { AccountRegistry } from '../accounts/account-registry.ts';
import type { Activity } from '../accounts/activity/activity.ts';
import type { ApiKeys } from '../accounts/api-keys/api-keys.ts';
import type { AccountMail } from '../accounts/mail/account-mail.ts';
import type { Passkeys } from '../accounts/passkeys/passkeys.ts';
import type { PasswordChanges } from '../accounts/passwords/changes.ts';
import type { PasswordLinkRequests } from '../accounts/passwords/link-mail.ts';
import type { PasswordLinks } from '../accounts/passwords/links.ts';
import type { RecoveryWaits } from '../accounts/passwords/recovery-waits.ts';
import type { SessionList } from '../accounts/session-list.ts';
import type { ShownOnce } from '../accounts/shown-once.ts';
import type { WaysIn } from '../accounts/ways-in.ts';
import type { Authorizations } from '../authorizations/authorization.ts';
import type { Connections } from '../authorizations/connections.ts';
import type { Disconnect, Endings, RemoveClient } from '../authorizations/endings.ts';
import type { OrganizationEndings } from '../authorizations/organization-endings.ts';
import type { AttemptLimit } from '../base/attempt-limits.ts';
import type { Clock } from '../base/clock.ts';
import type { Seals } from '../base/seals.ts';
import type { ClientProblems } from '../clients/client-problems.ts';
import type { ClientRegistry } from '../clients/client-registry.ts';
import type { ClientRequests } from '../clients/client-requests.ts';
import type { RequestStreams } from '../clients/request-streams.ts';
import type { BrowserSessions } from '../provider/browser-sessions.ts';
import type { ClientTests } from '../provider/client-tests.ts';
import type { Interactions } from '../provider/interactions.ts';
import type { SessionDemands } from '../provider/session-demands.ts';
import type { ErrorPage } from './error-page/error-page.ts';
import type { FirstSignIn } from './first-sign-in/question.ts';
import type { KeptForms } from './forms/kept-forms.ts';
import type { PageHost } from './page.ts';
import type { EndingChoices } from './password/recovery.ts';
import type { Demands } from './sign-in/demands.ts';
import type { KnownDevices } from './sign-in/known-devices.ts';
import type { PasskeySignIns } from './sign-in/passkeys.ts';
import type { PasswordCheck } from './sign-in/password-check.ts';
import type { RecordSignIn } from './sign-in/signing-in.ts';
import type { UpstreamSignIns } from './sign-in/upstream-ways.ts';
import type { WaitingSignIn } from './sign-in/waiting-sign-in.ts';

/** Mounted by the host; `test/host/routes.test.ts` holds the table of all of them. */
export interface Route {
  /** GET answers HEAD as well. */
  readonly method: string;
  /** As the router writes it: `/profile/connections/:id`. More than one fits? The first answers. */
  readonly path: string;
  /** In order, each named after what it requires or does. */
  readonly steps: readonly Middleware[];
}

const answering =
  (method: 'GET' | 'POST') =>
  (path: string, ...steps: Middleware[]): Route => ({ method, path, steps });

export const get = answering('GET');
export const post = answering('POST');

/** What stands before the answers of most pages. */
export interface PageSteps {
  /** A form of ours, whoever sends it; read (see `formOf`), and its answer kept for Back. */
  readonly form: readonly Middleware[];
  /**
   * Goes on with somebody signed in (see `accountOf`); sends everybody else to sign in. What was
   * typed into a form is then kept, and the page draws it again (see `typedOf`).
   */
  requireSignedIn(ctx: Context, next: Next): Promise<void>;
  /**
   * A form of ours from who is signed in, drawn for this session. Of any other nothing is done but
   * to say who is signed in now, with what was typed.
   */
  ownForm(redraw?: Redraw): readonly Middleware[];
  /**
   * After `ownForm`: goes on when the sign-in is recent, else asks for the password on a page that
   * carries the form along, so that nothing typed is lost.
   */
  requireRecentSignIn(ctx: Context, next: Next): Promise<void>;
  /** Whether it would go on without asking. */
  isRecent(ctx: Context): Promise<boolean>;
}

/** How the page of a form is drawn with what was sent, where more was filled in than a button. */
export interface Redraw {
  /** Somebody else has this page too, and the form does the same there. */
  readonly isForEverybody: boolean;
  draw(ctx: Context, problem: string): Promise<void>;
}

/** What pages are given. Each takes by name what it needs. */
export interface PageParts {
  readonly issuer: string;
  readonly clock: Clock;
  readonly host: PageHost;
  readonly steps: PageSteps;
  readonly errorPage: ErrorPage;
  /** How many of them one person may have. */
  readonly limits: { readonly clientsPerPerson: number; readonly apiKeysPerPerson: number };
  /** In seconds. */
  readonly lifetimes: Lifetimes;
  readonly clients: ClientRegistry;
  readonly clientProblems: ClientProblems;
  readonly clientRequests: ClientRequests;
  readonly requestStreams: RequestStreams;
  readonly accounts: AccountRegistry;
  readonly access: Access;
  readonly sessionList: SessionList;
  readonly activity: Activity;
  readonly apiKeys: ApiKeys;
  readonly connections: Connections;
  readonly removeClient: RemoveClient;
  readonly disconnect: Disconnect;
  readonly endings: Endings;
  readonly organizationEndings: OrganizationEndings;
  readonly authorizations: Authorizations;
  readonly clientTests: ClientTests;
  readonly interactions: Interactions;
  readonly sessions: BrowserSessions;
  readonly recordSignIn: RecordSignIn;
  /** False: nobody signs in with one, and no page is about them. */
  readonly passwords: boolean;
  readonly upstream: UpstreamSignIns;
  readonly passkeys: Passkeys;
  /** Absent where nobody signs in with one, and no page is about them. */
  readonly passkeySignIns: PasskeySignIns | undefined;
  readonly checkPassword: PasswordCheck;
  readonly passwordChanges: PasswordChanges;
  readonly passwordLinks: PasswordLinks;
  /** Of accounts of which more than a password is asked. */
  readonly recovery: {
    readonly waits: RecoveryWaits;
    readonly waitSeconds: number;
    /** For the links that stop one. */
    readonly stopLinks: Seals;
  };
  readonly waysIn: WaysIn;
  readonly demands: Demands;
  readonly sessionDemands: SessionDemands;
  readonly endingChoices: EndingChoices;
  readonly firstSignIn: FirstSignIn;
  /** Absent where no mail is sent, as is the URL. */
  readonly linkRequests:
    | {
        readonly requests: PasswordLinkRequests;
        /** Per network address, whoever they are for: nobody has mail sent to everybody. */
        readonly perAddress: AttemptLimit;
      }
    | undefined;
  readonly forgotPasswordUrl: string | undefined;
  /** Absent where no mail is sent. */
  readonly mail: AccountMail | undefined;
  readonly devices: KnownDevices;
  readonly keptForms: KeptForms;
  readonly shownOnce: ShownOnce;
  readonly waiting: WaitingSignIn;
  /** For what a page showed, which its form brings back. */
  readonly seals: Seals;
  readonly postForm: PostForm;
  /** The GraphQL API that the tokens are for; absent where the operator names none. */
  readonly api: ShownApi | undefined;
}

export interface ShownApi {
  readonly graphqlUrl: string;
  /** What the operator chose for everybody to begin with. */
  readonly exampleQuery: string;
  readonly call: CallApi;
}

/** Sends the example query of the API with this access token. Never rejects. */
export type CallApi = (accessToken: string) => Promise<ApiAnswer>;

export type ApiAnswer =
  | {
      readonly status: number;
      readonly body: string;
      /** It was longer than a page shows. */
      readonly isCut: boolean;
    }
  /** Why there is none, in words that follow a colon. */
  | { readonly failure: string };

/** Of the settings in force, in seconds. */
export interface Lifetimes {
  readonly authorizationCodeSeconds: number;
  readonly accessTokenSeconds: number;
  readonly refreshTokenSeconds: number;
  readonly retryWindowSeconds: number;
}

/** Posts a form to a path of this service over HTTP, as anybody would. */
export type PostForm = (
  path: string,
  form: Readonly<Record<string, string>>,
) => Promise<{ readonly status: number; readonly body: string }>;
