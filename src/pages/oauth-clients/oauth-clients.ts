/** `/profile/oauth-clients`: lists the clients of the user. */
import type { Context } from 'koa';
import { message, type Text } from '../../base/message.ts';
import type { ClientRegistry } from '../../clients/client-registry.ts';
import type { ClientRequests } from '../../clients/client-requests.ts';
import { type OwnedClient, shownPeople } from '../../clients/client-row.ts';
import { type ListForm, type ListView, listOf, usualOrders } from '../lists.ts';
import type { PageKit } from '../page-kit.ts';
import { get, type Route } from '../routes.ts';
import { accountOf } from '../signed-in.ts';
import { momentOrNothing, toMoment } from '../words/moment.ts';
import { tileOf } from '../words/tile.ts';
import { LIST, urlOf } from './own-client.ts';

declare module '../view-data.ts' {
  interface ViewData {
    readonly 'oauth-clients': {
      readonly notice: Text | undefined;
      readonly clients: readonly ReturnType<typeof rowOf>[];
      readonly list: ListView;
      /** The maximum number of clients per user. */
      readonly limit: number;
      readonly hasRoom: boolean;
    };
  }
}

const CLIENTS: ListForm<OwnedClient> = {
  path: LIST,
  idOf: ({ id }) => id,
  textOf: ({ id, name, redirectUris }) => [id, name, ...redirectUris].join(' '),
  orders: usualOrders(({ createdAt }) => createdAt),
  filters: [
    { name: 'unused', label: message('lists.never-used'), has: ({ lastUsedAt }) => lastUsedAt === undefined },
    { name: 'suspended', label: message('lists.suspended'), has: ({ isSuspended }) => isSuspended },
  ],
};

const rowOf = (client: OwnedClient, problems: number) => ({
  url: urlOf(client),
  tile: tileOf(client),
  id: client.id,
  name: client.name,
  isSuspended: client.isSuspended,
  created: toMoment(client.createdAt),
  connectedPeople: message('oauth-clients.people-count', shownPeople(client.connectedPeople)),
  lastUsed: momentOrNothing(client.lastUsedAt),
  problems,
  problemsUrl: urlOf(client, 'problems'),
});

export function clientListPage(parts: {
  readonly kit: PageKit;
  readonly clients: ClientRegistry;
  readonly clientRequests: Pick<ClientRequests, 'openCounts'>;
  readonly limit: number;
}): Route[] {
  const { kit, clients, clientRequests, limit } = parts;

  async function show(ctx: Context): Promise<void> {
    const owned = await clients.listByOwner(accountOf(ctx).id);
    const { rows, list } = listOf(owned, ctx.query, CLIENTS);
    const open = await clientRequests.openCounts(undefined, accountOf(ctx).id);
    await kit.render(ctx, 'oauth-clients', {
      notice: await kit.notices.take(ctx),
      list,
      clients: rows.map((client) => rowOf(client, open.get(client.id) ?? 0)),
      limit,
      hasRoom: owned.length < limit,
    });
  }

  return [get(LIST, kit.requireSignedIn, show)];
}
