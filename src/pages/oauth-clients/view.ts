/** What the pages of a person's OAuth clients print. */
import type { Moment } from '../moment.ts';
import type { FormProblem, ReachedOrganization } from '../view-data.ts';
import type { ClientSnippet } from './snippets.ts';
import type { TestStep } from './test-run.ts';

declare module '../view-data.ts' {
  interface ViewData {
    readonly 'oauth-clients': OAuthClientsView;
    readonly 'oauth-client-new': OAuthClientNewView;
    readonly 'oauth-client': OAuthClientView;
    readonly 'oauth-client-delete': OAuthClientDeleteView;
    readonly 'oauth-client-test': OAuthClientTestView;
  }
}

export interface OAuthClientsView {
  readonly notice: string | undefined;
  readonly clients: readonly OAuthClientRow[];
  /** How many a person may have. */
  readonly limit: number;
  readonly hasRoom: boolean;
}

export interface OAuthClientRow {
  readonly url: string;
  readonly id: string;
  readonly name: string;
  readonly isSuspended: boolean;
  readonly created: Moment;
  readonly connectedPeople: number;
  /** Absent for a client that never did anything. */
  readonly lastUsed: Moment | undefined;
}

export interface OAuthClientNewView {
  readonly notice: string | undefined;
  readonly form: ClientFormView;
}

/** The fields that a person fills in for a client, new or not. */
export interface ClientFormView {
  readonly action: string;
  /** Of a new client: tells one drawn form from the next. */
  readonly creationKey?: string;
  /** Above the form; those of a field stand beside it as well. */
  readonly problems: readonly FormProblem[];
  /** What was typed before, or empty. */
  readonly name: string;
  readonly nameProblem: string | undefined;
  /** Absent where nobody is sent back to the client. */
  readonly rows: readonly RedirectUriRow[] | undefined;
  readonly canAddRow: boolean;
  readonly button: string;
}

export interface RedirectUriRow {
  readonly uri: string;
  readonly problem: string | undefined;
  /** Allowed, but worth a second look. */
  readonly warnings: readonly string[];
  /** It was added just now. */
  readonly isNew: boolean;
}

export interface OAuthClientView {
  readonly notice: string | undefined;
  readonly client: {
    readonly id: string;
    readonly name: string;
    readonly isSuspended: boolean;
    readonly created: Moment;
    readonly connectedPeople: number;
    readonly lastUsed: Moment | undefined;
  };
  /** What a library asks for beside the client ID and the secret. */
  readonly endpoints: readonly { readonly label: string; readonly url: string }[];
  /** Absent for a client that sends nobody here, and while it is suspended. */
  readonly test: ClientTestForm | undefined;
  /** None for a client without a secret or a redirect URI. */
  readonly snippets: readonly ClientSnippet[];
  readonly form: ClientFormView;
  /** Absent for a client without secrets. */
  readonly secrets: ClientSecretsView | undefined;
  readonly problems: readonly ClientProblemRow[];
  readonly deleteUrl: string;
}

export interface ClientSecretsView {
  readonly live: readonly SecretRow[];
  /** Absent while there is no room for another secret. */
  readonly rotateUrl: string | undefined;
  /** Absent while there is only one, which cannot be removed. */
  readonly removeUrl: string | undefined;
}

export interface SecretRow {
  readonly id: string;
  readonly lastFour: string;
  readonly created: Moment;
  readonly lastUsed: Moment | undefined;
  readonly isSafeToRemove: boolean;
}

export interface ClientProblemRow {
  readonly at: Moment;
  /** `Authorize` or `Token`. */
  readonly step: string;
  readonly error: string;
  /** Absent for an error without a page of its own. */
  readonly errorUrl: string | undefined;
  readonly cause: string;
  /** In words; absent at the authorize step. */
  readonly authMethod: string | undefined;
  /** What was sent, unasked: there are none. */
  readonly scope: string | undefined;
  readonly redirectUri: SentRedirectUri | undefined;
  readonly requestId: string;
}

export interface SentRedirectUri {
  readonly sent: readonly UriPart[];
  /** The nearest that is registered; absent where nothing is to be compared. */
  readonly nearest: readonly UriPart[] | undefined;
  /** In words, each a sentence. */
  readonly differences: readonly string[];
}

export interface UriPart {
  readonly text: string;
  readonly isMarked: boolean;
}

export interface OAuthClientDeleteView {
  readonly name: string;
  readonly connectedPeople: number;
  readonly action: string;
  /** What was typed before, or empty. */
  readonly typedName: string;
  readonly problem: string | undefined;
  readonly cancel: string;
}

/** The form that begins a test. */
export interface ClientTestForm {
  readonly action: string;
  /** Otherwise the client has none to type. */
  readonly needsSecret: boolean;
  readonly problem: string | undefined;
  /** How long a test may take, and its result is kept: `5 minutes`. */
  readonly keptFor: string;
}

export interface OAuthClientTestView {
  readonly client: { readonly name: string; readonly url: string };
  readonly form: ClientTestForm;
  /** Absent before a test, and some minutes after one. */
  readonly result: ClientTestResultView | undefined;
  /** A result was asked for that is not kept any more. */
  readonly isGone: boolean;
  /** What a resource server is told about the person; empty where nothing was issued. */
  readonly organizations: readonly ReachedOrganization[];
}

export interface ClientTestResultView {
  readonly isPassed: boolean;
  readonly summary: string;
  readonly steps: readonly TestStep[];
}
