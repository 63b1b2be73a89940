/** The view data of the pages about one client. */
import type { Message, Text } from '../../base/message.ts';
import type { Moment } from '../words/moment.ts';
import type { ReachedOrganization } from '../words/reached.ts';
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
        /** When the client got its present owner; undefined for the first owner. */
        readonly ownedSince: Moment | undefined;
        /** How many secrets a former owner may know. */
        readonly formerSecrets: number;
        readonly redirectUris: readonly string[];
        /** When the operator verified the client; undefined for a client that is not verified. */
        readonly verified: Moment | undefined;
        /** True if users approve the client. */
        readonly isForPeople: boolean;
      };
      readonly secretsUrl: string;
      readonly connectUrl: string;
      readonly settingsUrl: string;
      /** Undefined if the client has no open problem. */
      readonly problems:
        | {
            readonly url: string;
            readonly latest: Pick<ClientProblemGroup, 'error' | 'cause' | 'last'>;
            /** How many other open problems the client has. */
            readonly others: number;
          }
        | undefined;
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
      /** The parts of the `.env` file before, between and after the client ID and the secret. */
      readonly environment: ReturnType<typeof environmentAround>;
      readonly nextUrl: string;
    };
    readonly 'oauth-client-settings': ClientPage & {
      readonly form: ClientFormView;
      /** True if users are asked for consent at each request; undefined for a kind of client without this choice. */
      readonly alwaysAsk: boolean | undefined;
      /** True if the operator has set `alwaysAsk`, so that the owner cannot change it. */
      readonly isAskedForOperator: boolean;
      readonly linksUrl: string;
      readonly deleteUrl: string;
    };
    readonly 'oauth-client-secrets': ClientPage & {
      readonly problems: readonly FormProblem[];
      readonly live: readonly SecretRow[];
      /** Undefined if the client has the maximum number of secrets. */
      readonly rotateUrl: string | undefined;
      /** Undefined if the client has only one secret, which cannot be removed. */
      readonly removeUrl: string | undefined;
      /** The page to renew the client after a theft; undefined for a kind of client that cannot be renewed. */
      readonly renewUrl: string | undefined;
      readonly renewed: Moment | undefined;
      /** Undefined for a resource server. */
      readonly networks: NetworksView | undefined;
    };
    readonly 'oauth-client-problems': ClientPage & {
      readonly open: readonly ClientProblemGroup[];
      /** Problems whose cause was removed. */
      readonly mended: readonly ClientProblemGroup[];
    };
    readonly 'oauth-client-test': {
      readonly client: { readonly name: string; readonly url: string };
      readonly form: ClientTestForm;
      /** The latest result; undefined if none is stored. */
      readonly result: ClientTestResult | undefined;
      /** True if the URL names a result that is no longer stored. */
      readonly isGone: boolean;
      /** The access that introspection has returned for the issued token; empty if no token was issued. */
      readonly organizations: readonly ReachedOrganization[];
      readonly notice: Text | undefined;
      /** The test organizations, which the user can join, or leave as a viewer. */
      readonly testOrganizations: readonly { name: string; isViewer: boolean; action: string }[];
    };
  }
}

interface ClientPage {
  readonly head: Awaited<ReturnType<OwnClientPages['head']>>;
  readonly notice: Text | undefined;
}
