/** `/profile/oauth-clients`: the clients that a person registered. */
import type { Context } from 'koa';
import type { OwnedClient } from '../../clients/client-row.ts';
import { byText, byTime, type ListForm, listOf } from '../lists.ts';
import { get, type PageParts, type Route } from '../routes.ts';
import { accountOf } from '../signed-in.ts';
import { momentOf, momentOrNothing } from '../words/moment.ts';
import { oauthClientRoutes, requestRoutes } from './client.ts';
import { connectRoutes } from './connect.ts';
import { deleteRoutes } from './delete.ts';
import { linkRoutes } from './links.ts';
import { newClientRoutes } from './new.ts';
import { LIST, ownClientSteps, urlOf } from './own-client.ts';
import { problemRoutes } from './problems.ts';
import { createdRoutes, secretRoutes } from './secrets.ts';
import { settingsRoutes } from './settings.ts';
import { testRoutes } from './test.ts';

const CLIENTS: ListForm<OwnedClient> = {
  path: LIST,
  idOf: ({ id }) => id,
  textOf: ({ id, name, redirectUris }) => [id, name, ...redirectUris].join(' '),
  orders: [
    byText('name', 'Name', ({ name }) => name),
    byTime('newest', 'Newest', ({ createdAt }) => createdAt),
    byTime('used', 'Last used', ({ lastUsedAt }) => lastUsedAt),
  ],
  filters: [
    { name: 'unused', label: 'Never used', has: ({ lastUsedAt }) => lastUsedAt === undefined },
    { name: 'suspended', label: 'Suspended', has: ({ isSuspended }) => isSuspended },
  ],
};

/** The list, and every page below it. */
export function oauthClientsPage(parts: PageParts): Route[] {
  const { host, clients } = parts;
  const { clientsPerPerson: limit } = parts.limits;

  async function show(ctx: Context): Promise<void> {
    const owned = await clients.listByOwner(accountOf(ctx).id);
    const { rows, list } = listOf(owned, ctx.query, CLIENTS);
    const counts = await parts.clientProblems.countsOf(rows.map(({ id }) => id));
    await host.render(ctx, 'oauth-clients', {
      notice: await host.notices.take(ctx),
      list,
      clients: rows.map((client) => ({
        url: urlOf(client),
        id: client.id,
        name: client.name,
        isSuspended: client.isSuspended,
        created: momentOf(client.createdAt),
        connectedPeople: client.connectedPeople,
        lastUsed: momentOrNothing(client.lastUsedAt),
        problems: counts.get(client.id) ?? 0,
        problemsUrl: urlOf(client, 'problems'),
      })),
      limit,
      hasRoom: owned.length < limit,
    });
  }

  const own = ownClientSteps(parts);
  return [
    get(LIST, parts.steps.requireSignedIn, show),
    ...newClientRoutes(parts),
    ...oauthClientRoutes(parts, own),
    ...requestRoutes(parts, own),
    ...connectRoutes(parts, own),
    ...settingsRoutes(parts, own),
    ...secretRoutes(parts, own),
    ...problemRoutes(parts, own),
    ...createdRoutes(parts, own),
    ...testRoutes(parts, own),
    ...linkRoutes(parts, own),
    ...deleteRoutes(parts, own),
  ];
}
