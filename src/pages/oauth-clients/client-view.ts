/** The data that the pages of one client print, except its form. */
import type { Message, Text } from '../../base/message.ts';
import type { ClientDay } from '../../clients/client-counts.ts';
import type { ClientProblemGroup as StoredGroup } from '../../clients/client-requests.ts';
import type { Moment } from '../words/moment.ts';
import type { ReachedOrganization } from '../words/reached.ts';
import type { clientSnippets } from './programs.ts';
import type { ClientFormView } from './view.ts';
import type { TestStep } from './wire-message.ts';

declare module '../view-data.ts' {
  interface ViewData {
    readonly 'oauth-client': ClientPage & {
      readonly client: {
        readonly id: string;
        readonly created: Moment;
        readonly connectedPeople: Message;
        readonly lastUsed: Moment | undefined;
        /** Undefined for the first owner. */
        readonly ownedSince: Moment | undefined;
        /** The number of secrets that the former owner may know. */
        readonly formerSecrets: number;
        readonly redirectUris: readonly string[];
        /** When the operator verified the client as it is now. */
        readonly verified: Moment | undefined;
        /** True if people approve it. */
        readonly isForPeople: boolean;
        readonly lastDay: ClientDay;
      };
      readonly secretsUrl: string;
      readonly connectUrl: string;
      readonly settingsUrl: string;
      /** Undefined if no problem is open. */
      readonly problems:
        | {
            readonly url: string;
            readonly latest: Pick<ClientProblemGroup, 'error' | 'cause' | 'last'>;
            /** The number of other causes of refusals. */
            readonly others: number;
          }
        | undefined;
      /** The requests since the owner began to watch them, newest first. */
      readonly requests: readonly ShownRequest[];
      readonly requestsUrl: string;
    };
    readonly 'oauth-client-connect': ClientPage &
      ClientConnectionView & {
        readonly id: string;
        /** Undefined for a client without a redirect flow, and while the client is suspended. */
        readonly test: ClientTestForm | undefined;
      };
    readonly 'oauth-client-created': {
      readonly heading: Message;
      readonly advice: Message;
      readonly name: string;
      readonly id: string;
      readonly secret: string;
      /** The `.env` around the client ID and the secret, which the view prints. */
      readonly environment: { readonly before: string; readonly between: string; readonly after: string };
      readonly nextUrl: string;
    };
    readonly 'oauth-client-settings': ClientPage & {
      readonly form: ClientFormView;
      /** Whether people are asked every time; undefined for clients that no person approves once. */
      readonly alwaysAsk: boolean | undefined;
      /** True if the operator set it, so that the owner cannot change it. */
      readonly isAskedForOperator: boolean;
      readonly linksUrl: string;
      readonly deleteUrl: string;
    };
    readonly 'oauth-client-secrets': ClientPage & {
      /** Why a change was refused. */
      readonly problems: readonly FormProblem[];
      readonly live: readonly SecretRow[];
      /** The page to add a secret; undefined while the client has the maximum number. */
      readonly rotateUrl: string | undefined;
      /** The page to remove the secret; undefined for the only one, which must stay. */
      readonly removeUrl: string | undefined;
      /** The page to renew the client after a theft; undefined for kinds that it does not help. */
      readonly renewUrl: string | undefined;
      readonly renewed: Moment | undefined;
      /** Undefined for a resource server. */
      readonly networks: ClientNetworksView | undefined;
    };
    readonly 'oauth-client-problems': ClientPage & {
      readonly open: readonly ClientProblemGroup[];
      /** Groups whose cause is removed. */
      readonly mended: readonly ClientProblemGroup[];
    };
    readonly 'oauth-client-test': {
      readonly client: { readonly name: string; readonly url: string };
      readonly form: ClientTestForm;
      /** The latest result; undefined before the first test, and when it is no longer kept. */
      readonly result: ClientTestResultView | undefined;
      /** True if the requested result is no longer kept. */
      readonly isGone: boolean;
      /** What a resource server learns about the user; empty if no token was issued. */
      readonly organizations: readonly ReachedOrganization[];
      readonly notice: Text | undefined;
      /** Those to join, and to leave as a viewer; `action` is the address of the form. */
      readonly testOrganizations: readonly { name: string; isViewer: boolean; action: string }[];
    };
  }
}

/** The heading and tabs around each page of one client. */
export interface ClientHead {
  readonly name: string;
  readonly isSuspended: boolean;
  readonly parts: readonly {
    readonly url: string;
    readonly label: Message;
    readonly isOverview: boolean;
    readonly isCurrent: boolean;
    /** The number of entries on the page; undefined for pages that show no number. */
    readonly count?: number;
  }[];
}

interface ClientPage {
  readonly head: ClientHead;
  readonly notice: Text | undefined;
}

/** One request of a client, on the page and in its stream. */
export interface ShownRequest {
  readonly at: Moment;
  /** The time to the second, with the time zone. */
  readonly time: string;
  readonly step: string;
  readonly outcome: string;
  readonly isRefused: boolean;
  /** True if the client received tokens, which is its latest use. */
  readonly isUse: boolean;
  /** Empty if the cause adds nothing to the outcome. */
  readonly cause: string;
  readonly requestId: string;
}

/** The values that a developer needs to connect a client. */
export interface ClientConnectionView {
  /** The values that a library needs in addition to the client ID and the secret. */
  readonly endpoints: readonly { readonly label: Message; readonly url: string }[];
  /** The configured API; undefined if the operator configured none. */
  readonly api: { readonly url: string; readonly query: string } | undefined;
  /** Host and port of a redirect URI on the user's own computer, if there is one. */
  readonly localAddress: string | undefined;
  /** The text of a complete `.env` file. */
  readonly environment: string;
  /** Empty for a client without a secret or without a redirect flow. */
  readonly snippets: ReturnType<typeof clientSnippets>;
  /** The URI to register if the client has none at which the programs could listen. */
  readonly toRegister: { readonly uri: string; readonly action: string } | undefined;
}

export interface SecretRow {
  readonly id: string;
  readonly lastFour: string;
  readonly created: Moment;
  readonly lastUsed: Moment | undefined;
  /** For a secret that was found in public. */
  readonly refusedFrom: Moment | undefined;
  readonly isRefused: boolean;
  readonly isSafeToRemove: boolean;
  readonly isKnownToFormerOwner: boolean;
}

export interface ClientNetworksView {
  readonly action: string;
  readonly seen: readonly {
    readonly network: string;
    readonly first: Moment;
    readonly last: Moment;
    readonly isNew: boolean;
    readonly isRefused: boolean;
  }[];
  /** The networks to which the client is restricted, as they are typed: with spaces between them. */
  readonly allowed: string;
  readonly isRestricted: boolean;
  readonly isMailed: boolean;
}

/** Refused requests with the same cause. */
export interface ClientProblemGroup
  extends Pick<StoredGroup, 'count' | 'step' | 'error' | 'cause' | 'isMended' | 'scope' | 'requestId'> {
  /** True if there may have been more than `count`. */
  readonly isCut: boolean;
  readonly first: Moment;
  readonly last: Moment;
  /** The page of the error in the reference, if it has one. */
  readonly errorUrl: string | undefined;
  /** How the client authenticated, in words; null at the authorize step. */
  readonly authMethod: Message | null;
  readonly redirectUri: SentRedirectUri | undefined;
}

export interface SentRedirectUri {
  readonly sent: readonly UriPart[];
  /** The nearest registered URI; undefined if there is nothing to compare. */
  readonly nearest: readonly UriPart[] | undefined;
  /** The differences between the two URIs, as sentences. */
  readonly differences: readonly Message[];
}

export interface UriPart {
  readonly text: string;
  readonly isMarked: boolean;
}

/** The form that starts a test. */
export interface ClientTestForm {
  readonly action: string;
  readonly needsSecret: boolean;
  readonly problem: Text | undefined;
  /** How long a test may take, and how long its result is kept. */
  readonly keptFor: Message;
}

export interface ClientTestResultView {
  readonly isPassed: boolean;
  readonly summary: Message;
  readonly apiAnswer: string | undefined;
  readonly steps: readonly TestStep[];
}
