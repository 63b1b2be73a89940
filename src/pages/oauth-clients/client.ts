/** `/profile/oauth-clients/:id`: how a client of a person is doing, and its requests as they happen. */
import type { Context } from 'koa';
import { get, type PageParts, type Route } from '../routes.ts';
import { momentOf, momentOrNothing } from '../words/moment.ts';
import { CLIENT, headOf, type OwnClientSteps, ownClientOf, urlOf } from './own-client.ts';
import { problemGroupsOf } from './problem-groups.ts';
import { requestsUrlOf, shownRequest } from './requests.ts';

export function oauthClientRoutes(parts: PageParts, own: OwnClientSteps): Route[] {
  const { host, clientProblems, clientRequests } = parts;

  async function show(ctx: Context): Promise<void> {
    // The page before this one may have shown a secret, which the browser would keep for its Back
    // button, `no-store` or not.
    if (ctx.query.from === 'secret') ctx.set('Clear-Site-Data', '"cache"');
    const client = ownClientOf(ctx);
    await clientRequests.watch(client.id);
    const [latest, ...others] = problemGroupsOf(await clientProblems.of(client.id), client);
    await host.render(ctx, 'oauth-client', {
      head: await headOf(ctx, '', parts),
      notice: await host.notices.take(ctx),
      client: {
        id: client.id,
        created: momentOf(client.createdAt),
        connectedPeople: client.connectedPeople,
        lastUsed: momentOrNothing(client.lastUsedAt),
      },
      connectUrl: urlOf(client, 'connect'),
      problems: latest && {
        url: urlOf(client, 'problems'),
        latest: { error: latest.error, cause: latest.cause, last: latest.last },
        others: others.length,
      },
      requests: clientRequests.latest(client.id).map(shownRequest),
      requestsUrl: requestsUrlOf(client),
    });
  }

  return [get(CLIENT, ...own.page, show)];
}
