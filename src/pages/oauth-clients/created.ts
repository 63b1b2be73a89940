/** `/profile/oauth-clients/:id/created`: the secret of a client, right after it was made, once. */
import type { Context } from 'koa';
import { get, type PageParts, type Route } from '../routes.ts';
import { accountOf } from '../signed-in.ts';
import { CLIENT, type OwnClientSteps, ownClientOf, urlOf } from './own-client.ts';

/** What `ShownOnce` keeps for this page. */
export interface ShownSecret {
  readonly clientId: string;
  readonly value: string;
  /** Or else it was added to a client that has another one in use. */
  readonly isOfNewClient: boolean;
}

export function createdRoutes({ host, shownOnce }: PageParts, own: OwnClientSteps): Route[] {
  async function take(ctx: Context): Promise<ShownSecret | undefined> {
    // A look at the headers alone would use up what nobody then sees.
    if (ctx.method !== 'GET') return undefined;
    const once = String(ctx.query.once ?? '');
    const shown = await shownOnce.take<ShownSecret>(accountOf(ctx).id, once);
    return shown?.clientId === ownClientOf(ctx).id ? shown : undefined;
  }

  async function show(ctx: Context): Promise<void> {
    const { id, name } = ownClientOf(ctx);
    const shown = await take(ctx);
    const url = urlOf({ id });
    await host.render(ctx, 'secret-shown', {
      section: 'oauth-clients',
      heading: headingOf(shown),
      ...(shown && {
        secret: {
          name,
          label: 'Client secret',
          clientId: id,
          value: shown.value,
          advice: shown.isOfNewClient
            ? 'Copy the secret now, to where your server keeps its secrets. It is not shown again.'
            : 'Copy it now and put it to use everywhere. The secret before it stays good until you remove it.',
        },
      }),
      remedy: 'If you did not copy it, rotate the secret and remove the lost one.',
      next: shown
        ? { href: `${url}?from=secret`, label: 'I have copied it' }
        : { href: url, label: 'Go to the client' },
    });
  }

  return [get(`${CLIENT}/created`, ...own.page, show)];
}

function headingOf(shown: ShownSecret | undefined): string {
  if (!shown) return 'This client secret was shown already';
  return shown.isOfNewClient ? 'Your new OAuth client' : 'Your new client secret';
}
