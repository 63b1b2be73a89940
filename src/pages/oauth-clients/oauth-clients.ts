/** `/profile/oauth-clients`: the clients that a person registered. */
import type { Context } from 'koa';
import type { ClientRegistry } from '../../clients/client-registry.ts';
import { momentOf, momentOrNothing } from '../moment.ts';
import type { PageHost } from '../page.ts';
import { accountOf } from '../signed-in.ts';

export interface OAuthClientsParts {
  readonly host: PageHost;
  readonly clients: ClientRegistry;
  /** Clients that one person may have. */
  readonly limit: number;
}

export function oauthClientsPage({ host, clients, limit }: OAuthClientsParts) {
  return {
    async show(ctx: Context): Promise<void> {
      const owned = await clients.listByOwner(accountOf(ctx).id);
      await host.render(ctx, 'oauth-clients', {
        notice: await host.notices.take(ctx),
        clients: owned.map((client) => ({
          url: `/profile/oauth-clients/${client.id}`,
          id: client.id,
          name: client.name,
          isSuspended: client.isSuspended,
          created: momentOf(client.createdAt),
          connectedPeople: client.connectedPeople,
          lastUsed: momentOrNothing(client.lastUsedAt),
        })),
        limit,
        hasRoom: owned.length < limit,
      });
    },
  };
}
