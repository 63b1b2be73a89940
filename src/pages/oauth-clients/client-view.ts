/** What the pages of one client print, but for its form. */
import type { Moment } from '../words/moment.ts';
import type { KeptTokens } from './test-run.ts';
import type { ClientFormView } from './view.ts';
import type { TestStep } from './wire-message.ts';

declare module '../view-data.ts' {
  interface ViewData {
    readonly 'oauth-client': ClientPage & {
      readonly client: {
        readonly id: string;
        readonly created: Moment;
        readonly connectedPeople: number;
        readonly lastUsed: Moment | undefined;
      };
      readonly connectUrl: string;
      /** Absent where there are none. */
      readonly problems:
        | {
            readonly url: string;
            readonly latest: Pick<ClientProblemGroup, 'error' | 'cause' | 'last'>;
            /** Other causes. */
            readonly others: number;
          }
        | undefined;
      /** Since somebody began to look, the newest first. */
      readonly requests: readonly ShownRequest[];
      readonly requestsUrl: string;
    };
    readonly 'oauth-client-connect': ClientPage &
      ClientConnectionView & {
        readonly id: string;
        /** Absent for a client that sends nobody here, and while it is suspended. */
        readonly test: ClientTestForm | undefined;
      };
    readonly 'oauth-client-created': ClientConnectionView & {
      readonly heading: string;
      readonly advice: string;
      readonly name: string;
      readonly id: string;
      readonly secret: string;
      readonly test: ClientTestForm | undefined;
      readonly nextUrl: string;
    };
    readonly 'oauth-client-settings': ClientPage & {
      readonly form: ClientFormView;
      readonly deleteUrl: string;
    };
    readonly 'oauth-client-secrets': ClientPage & {
      /** What was refused. */
      readonly problem: string | undefined;
      readonly live: readonly SecretRow[];
      /** Absent while there is no room for another secret. */
      readonly rotateUrl: string | undefined;
      /** Absent while there is only one, which cannot be removed. */
      readonly removeUrl: string | undefined;
    };
    readonly 'oauth-client-problems': ClientPage & {
      readonly groups: readonly ClientProblemGroup[];
      readonly registerUrl: string;
    };
    readonly 'oauth-client-test': {
      readonly client: { readonly name: string; readonly url: string };
      readonly form: ClientTestForm;
      /** Absent before a test, and some minutes after one. */
      readonly result: ClientTestResultView | undefined;
      /** Of a test that keeps them, once. */
      readonly tokens: KeptTokensView | undefined;
      /** A result was asked for that is not kept any more. */
      readonly isGone: boolean;
      /** What a resource server is told about the person; empty where nothing was issued. */
      readonly organizations: readonly ReachedOrganization[];
    };
  }
}

/** Around each page of one client. */
export interface ClientHead {
  readonly name: string;
  readonly isSuspended: boolean;
  readonly parts: readonly {
    readonly url: string;
    readonly label: string;
    readonly isCurrent: boolean;
    /** Of what is there; absent where nobody counts. */
    readonly count?: number;
  }[];
}

interface ClientPage {
  readonly head: ClientHead;
  readonly notice: string | undefined;
}

/** One request of a client, on the page and in its stream. */
export interface ShownRequest {
  readonly at: Moment;
  /** To the second, with its zone. */
  readonly time: string;
  readonly step: string;
  readonly outcome: string;
  readonly isRefused: boolean;
  /** Empty where the outcome says it all. */
  readonly cause: string;
  readonly requestId: string;
}

/** What a client is connected with. */
export interface ClientConnectionView {
  /** What a library asks for beside the client ID and the secret. */
  readonly endpoints: readonly { readonly label: string; readonly url: string }[];
  /** Absent where the operator names none. */
  readonly api: { readonly url: string; readonly query: string } | undefined;
  /** Host and port of a redirect URI on the person's own computer; absent where none is. */
  readonly localAddress: string | undefined;
  /** A whole `.env`. */
  readonly environment: string;
  /** None for a client without a secret, or one that sends nobody here. */
  readonly snippets: readonly ClientSnippet[];
  /** Of the programs, where the client has no address that they could wait at. */
  readonly toRegister: { readonly uri: string; readonly action: string } | undefined;
}

/** A program in one language, to be copied and run. */
export interface ClientSnippet {
  readonly name: string;
  readonly code: string;
}

export interface SecretRow {
  readonly id: string;
  readonly lastFour: string;
  readonly created: Moment;
  readonly lastUsed: Moment | undefined;
  readonly isSafeToRemove: boolean;
}

/** Refused requests with one cause. */
export interface ClientProblemGroup {
  readonly count: number;
  readonly first: Moment;
  readonly last: Moment;
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
  /** Of the latest. */
  readonly requestId: string;
  /** What was sent, where registering it would mend it. */
  readonly toRegister: string | undefined;
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

/** The form that begins a test. */
export interface ClientTestForm {
  readonly action: string;
  /** Otherwise the client has none to type. */
  readonly needsSecret: boolean;
  readonly problem: string | undefined;
  /** As it was sent before. */
  readonly keepsTokens: boolean;
  /** How long a test may take, and its result is kept: `5 minutes`. */
  readonly keptFor: string;
}

export interface KeptTokensView extends KeptTokens {
  /** Refreshed or not: `70 minutes`. */
  readonly goodFor: string;
}

export interface ClientTestResultView {
  /** Nothing was revoked at the end. */
  readonly isKept: boolean;
  readonly isPassed: boolean;
  readonly summary: string;
  readonly apiAnswer: string | undefined;
  readonly steps: readonly TestStep[];
}
