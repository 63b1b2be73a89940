/** `/profile/oauth-clients/:id/created`: the secret of a client, right after it was made, once. */
import type { Context } from 'koa';
import { get, type PageParts, type Route } from '../routes.ts';
import { accountOf } from '../signed-in.ts';
import { connectionOf } from './connect.ts';
import { CLIENT, type OwnClientSteps, ownClientOf, urlOf } from './own-client.ts';
import { isTestable, testFormOf } from './test.ts';

/** What `ShownOnce` keeps for this page. */
export interface ShownSecret {
  readonly clientId: string;
  readonly value: string;
  /** Or else it was added to a client that has another one in use. */
  readonly isOfNewClient: boolean;
}

export function createdRoutes(parts: PageParts, own: OwnClientSteps): Route[] {
  const { host, shownOnce } = parts;

  async function take(ctx: Context): Promise<ShownSecret | undefined> {
    // A look at the headers alone would use up what nobody then sees.
    if (ctx.method !== 'GET') return undefined;
    const once = String(ctx.query.once ?? '');
    const shown = await shownOnce.take<ShownSecret>(accountOf(ctx).id, once);
    return shown?.clientId === ownClientOf(ctx).id ? shown : undefined;
  }

  async function show(ctx: Context): Promise<void> {
    const client = ownClientOf(ctx);
    const shown = await take(ctx);
    if (!shown) return showGone(ctx);
    const { value: secret, isOfNewClient } = shown;
    await host.render(ctx, 'oauth-client-created', {
      heading: isOfNewClient ? 'Your new OAuth client' : 'Your new client secret',
      advice: isOfNewClient
        ? 'Copy the secret now, to where your server keeps its secrets. It is not shown again.'
        : 'Copy it now and put it to use everywhere. The secret before it stays good until you remove it.',
      name: client.name,
      id: client.id,
      secret,
      test: isTestable(client) ? testFormOf(client) : undefined,
      nextUrl: `${urlOf(client)}?from=secret`,
      ...connectionOf(client, parts, secret),
    });
  }

  const showGone = (ctx: Context): Promise<void> =>
    host.render(ctx, 'secret-shown', {
      section: 'oauth-clients',
      heading: 'This client secret was shown already',
      remedy: 'If you did not copy it, rotate the secret and remove the lost one.',
      next: { href: urlOf(ownClientOf(ctx), 'secrets'), label: 'Go to the client' },
    });

  return [get(`${CLIENT}/created`, ...own.page, show)];
}
