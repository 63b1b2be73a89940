/** `/profile/oauth-clients/:id/problems`: why requests of a client were refused, and what mends it. */
import type { Context } from 'koa';
import { get, type PageParts, type Route } from '../routes.ts';
import { CLIENT, headOf, type OwnClientSteps, ownClientOf, urlOf } from './own-client.ts';
import { problemGroupsOf } from './problem-groups.ts';

export function problemRoutes(parts: PageParts, own: OwnClientSteps): Route[] {
  const { host, clientProblems } = parts;

  async function show(ctx: Context): Promise<void> {
    const client = ownClientOf(ctx);
    await host.render(ctx, 'oauth-client-problems', {
      head: await headOf(ctx, 'problems', parts),
      notice: await host.notices.take(ctx),
      groups: problemGroupsOf(await clientProblems.of(client.id), client),
      registerUrl: `${urlOf(client)}/redirect-uris`,
    });
  }

  return [get(`${CLIENT}/problems`, ...own.page, show)];
}
