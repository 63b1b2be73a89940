/** The view data of the pages about one client. */
import type { Text } from '../../base/message.ts';
import type { ClientProblemGroup, overviewOf } from './client.ts';
import type { ClientFormView } from './client-form.ts';
import type { ConnectionView } from './connect.ts';
import type { OwnClientPages } from './own-client.ts';
import type { changesOf, SecretRow, shownOnce } from './secrets.ts';
import type { choicesFor } from './settings.ts';
import type { testOrganizationsFor } from './test-organizations.ts';

declare module '../view-data.ts' {
  interface ViewData {
    readonly 'oauth-client': ClientPage & ReturnType<typeof overviewOf>;
    readonly 'oauth-client-connect': ClientPage &
      ConnectionView & {
        readonly id: string;
        readonly testOrganizations: Awaited<ReturnType<typeof testOrganizationsFor>>;
      };
    readonly 'oauth-client-created': ReturnType<typeof shownOnce>;
    readonly 'oauth-client-settings': ClientPage & { readonly form: ClientFormView } & ReturnType<typeof choicesFor>;
    readonly 'oauth-client-secrets': ClientPage &
      ReturnType<typeof changesOf> & {
        readonly problems: readonly FormProblem[];
        readonly live: readonly SecretRow[];
      };
    readonly 'oauth-client-problems': ClientPage & {
      readonly open: readonly ClientProblemGroup[];
      /** Problems whose cause was removed. */
      readonly mended: readonly ClientProblemGroup[];
    };
  }
}

interface ClientPage {
  readonly head: Awaited<ReturnType<OwnClientPages['head']>>;
  readonly notice: Text | undefined;
}
