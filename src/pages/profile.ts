/** `/profile`: who is signed in, what they reach, and the counts of the other pages. */
import type { Context } from 'koa';
import type { Access } from '../accounts/access/access.ts';
import type { ApiKeys } from '../accounts/api-keys/api-keys.ts';
import type { Connections } from '../authorizations/connections.ts';
import type { Clock } from '../base/clock.ts';
import { type Message, message } from '../base/texts.ts';
import type { ClientRegistry } from '../clients/client-registry.ts';
import { seeOther } from './page.ts';
import type { PageKit } from './page-kit.ts';
import type { RecoveryNotice, StopRecovery } from './password/stop-recovery.ts';
import { get, type Route } from './routes.ts';
import { accountOf } from './signed-in.ts';
import { describeReached } from './words/reached.ts';

declare module './view-data.ts' {
  interface ViewData {
    readonly profile: {
      readonly recovery: RecoveryNotice | undefined;
      readonly organizations: readonly ReachedOrganization[];
      readonly counts: readonly {
        readonly href: string;
        readonly label: Message;
      }[];
    };
  }
}

const PATH = '/profile';

export function profilePage(parts: {
  readonly kit: PageKit;
  readonly clock: Clock;
  readonly access: Access;
  readonly clients: ClientRegistry;
  readonly connections: Connections;
  readonly apiKeys: ApiKeys;
  readonly stopRecovery: Pick<StopRecovery, 'notice'>;
}): Route[] {
  const { kit, clock, access, clients, connections, apiKeys, stopRecovery } = parts;

  async function show(ctx: Context): Promise<void> {
    const { id: accountId } = accountOf(ctx);
    const [organizations, owned, connected, keys, recovery] = await Promise.all([
      access.accessOf({ accountId }),
      clients.listByOwner(accountId),
      connections.listOf(accountId),
      apiKeys.listOf(accountId),
      stopRecovery.notice(accountId),
    ]);
    const active = keys.filter(({ expiresAt }) => !expiresAt || expiresAt.getTime() > clock());
    await kit.render(ctx, 'profile', {
      recovery,
      organizations: organizations.map((one) => describeReached(one, kit.rightsInWords(ctx))),
      counts: [
        countOf('connections', connected),
        countOf('api-keys', active),
        countOf('oauth-clients', owned),
      ],
    });
  }

  const toProfile = (ctx: Context): void => seeOther(ctx, PATH);
  return [get('/', toProfile), get(PATH, kit.requireSignedIn, show)];
}

type Counted = 'connections' | 'api-keys' | 'oauth-clients';

const countOf = (page: Counted, { length }: readonly unknown[]) => ({
  href: `${PATH}/${page}`,
  label: message(`profile.${page}`, { count: length }),
});
