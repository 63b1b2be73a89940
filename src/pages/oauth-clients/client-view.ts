/** The data that the pages of one client print, except its form. */
import type { Message, Text } from '../../base/message.ts';
import type { ClientDay } from '../../clients/client-counts.ts';
import type { Moment } from '../words/moment.ts';
import type { ReachedOrganization } from '../words/reached.ts';
import type { shownRequest } from './client.ts';
import type { ClientFormView } from './client-form.ts';
import type { ConnectionView, environmentAround } from './connect.ts';
import type { OwnClientPages } from './own-client.ts';
import type { ClientProblemGroup } from './problems.ts';
import type { NetworksView, SecretRow } from './secrets.ts';
import type { ClientTestForm, ClientTestResult } from './test.ts';

declare module '../view-data.ts' {
  interface ViewData {
    readonly 'oauth-client': ClientPage & {
      readonly client: {
        readonly id: string;
        readonly created: Moment;
        readonly connectedPeople: Message;
        readonly lastUsed: Moment | undefined;
        /** Undefined if the client still has its first owner. */
        readonly ownedSince: Moment | undefined;
        /** The number of secrets that a former owner may know. */
        readonly formerSecrets: number;
        readonly redirectUris: readonly string[];
        /** When the operator verified the client; undefined if it is not, or no longer, verified. */
        readonly verified: Moment | undefined;
        /** True if users approve the client. */
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
      /** The latest requests, newest first. */
      readonly requests: readonly ReturnType<ReturnType<typeof shownRequest>>[];
      readonly requestsUrl: string;
    };
    readonly 'oauth-client-connect': ClientPage &
      ConnectionView & {
        readonly id: string;
        /** Undefined for a client without redirect URIs, and while the client is suspended. */
        readonly test: ClientTestForm | undefined;
      };
    readonly 'oauth-client-created': {
      readonly heading: Message;
      readonly advice: Message;
      readonly name: string;
      readonly id: string;
      readonly secret: string;
      /** The parts of the `.env` file around the client ID and the secret, which the view prints between them. */
      readonly environment: ReturnType<typeof environmentAround>;
      readonly nextUrl: string;
    };
    readonly 'oauth-client-settings': ClientPage & {
      readonly form: ClientFormView;
      /** Whether users are asked at each request; undefined for kinds of clients that need no such choice. */
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
      /** The page to remove a secret; undefined if there is only one, which must stay. */
      readonly removeUrl: string | undefined;
      /** The page to renew the client after a theft; undefined for kinds of clients to which that does not help. */
      readonly renewUrl: string | undefined;
      readonly renewed: Moment | undefined;
      /** Undefined for a resource server. */
      readonly networks: NetworksView | undefined;
    };
    readonly 'oauth-client-problems': ClientPage & {
      readonly open: readonly ClientProblemGroup[];
      /** Groups of problems whose cause has been removed. */
      readonly mended: readonly ClientProblemGroup[];
    };
    readonly 'oauth-client-test': {
      readonly client: { readonly name: string; readonly url: string };
      readonly form: ClientTestForm;
      /** The latest result; undefined before the first test, and if it is no longer stored. */
      readonly result: ClientTestResult | undefined;
      /** True if the URL names a result that is no longer stored. */
      readonly isGone: boolean;
      /** What resource servers learn about the user's access; empty if no token was issued. */
      readonly organizations: readonly ReachedOrganization[];
      readonly notice: Text | undefined;
      /** The organizations that the user can join, or leave as a viewer; `action` is the URL of the form. */
      readonly testOrganizations: readonly { name: string; isViewer: boolean; action: string }[];
    };
  }
}

interface ClientPage {
  readonly head: Awaited<ReturnType<OwnClientPages['head']>>;
  readonly notice: Text | undefined;
}
