/** The view data of the pages about one client. */
import type { Text } from '../../base/message.ts';
import type { ReachedOrganization } from '../words/reached.ts';
import type { overviewOf } from './client.ts';
import type { ClientFormView } from './client-form.ts';
import type { ConnectionView } from './connect.ts';
import type { OwnClientPages } from './own-client.ts';
import type { ClientProblemGroup } from './problems.ts';
import type { changesOf, SecretRow, shownOnce } from './secrets.ts';
import type { choicesFor } from './settings.ts';
import type { ClientTestForm, ClientTestResult } from './test.ts';

declare module '../view-data.ts' {
  interface ViewData {
    readonly 'oauth-client': ClientPage & ReturnType<typeof overviewOf>;
    readonly 'oauth-client-connect': ClientPage &
      ConnectionView & {
        readonly id: string;
        /** Undefined for a client without redirect URIs, and while the client is suspended. */
        readonly test: ClientTestForm | undefined;
      };
    readonly 'oauth-client-created': ReturnType<typeof shownOnce>;
    readonly 'oauth-client-settings': ClientPage & { readonly form: ClientFormView } & ReturnType<typeof choicesFor>;
    readonly 'oauth-client-secrets': ClientPage &
      ReturnType<typeof changesOf> & {
        readonly problems: readonly FormProblem[];
        readonly live: readonly SecretRow[];
        /** Undefined for a resource server. */
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
