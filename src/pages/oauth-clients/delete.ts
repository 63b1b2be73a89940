/** `/profile/oauth-clients/:id/delete`: deletes a client and its tokens after the user has typed its name. */
import type { Context } from 'koa';
import type { Activity } from '../../accounts/activity/activity.ts';
import type { RemoveClient } from '../../authorizations/endings.ts';
import { message } from '../../base/message.ts';
import { Refusal } from '../../base/refusal.ts';
import { type OwnedClient, shownPeople } from '../../clients/client-row.ts';
import { endingRoutes } from '../ending.ts';
import { requestOrigin } from '../page.ts';
import type { PageKit } from '../page-kit.ts';
import type { Route } from '../routes.ts';
import { accountOf } from '../signed-in.ts';
import { CLIENT, LIST, type OwnClientPages, ownClientOf, urlOf } from './own-client.ts';

const DELETED = message('oauth-clients.deleted');

export function deleteClientPage(parts: {
  readonly kit: PageKit;
  readonly own: OwnClientPages;
  readonly removeClient: RemoveClient;
  readonly activity: Pick<Activity, 'record'>;
}): Route[] {
  const { kit, own, removeClient, activity } = parts;

  async function remove(ctx: Context, { id, name }: OwnedClient): Promise<void> {
    const removal = removeClient(
      id,
      (tx, people) =>
        activity.record(
          {
            action: 'client_deleted',
            actor: 'person',
            accountId: accountOf(ctx).id,
            details: { client_id: id, client_name: name, people },
            origin: requestOrigin(ctx),
          },
          tx,
        ),
      (tx) => own.requireStillOwned(ctx, tx),
    );
    await removal.catch((error: unknown) => {
      // A refusal means that another request has already deleted the client.
      if (!(error instanceof Refusal)) throw error;
    });
  }

  return endingRoutes<OwnedClient>(kit, {
    path: `${CLIENT}/delete`,
    admit: [own.requireOwnClient],
    find: async (ctx) => ownClientOf(ctx),
    ask(_ctx, { name, connectedPeople }) {
      return {
        section: 'oauth-clients',
        heading: message('oauth-clients.delete-heading', { client: name }),
        consequences: [
          message('oauth-clients.delete-people', shownPeople(connectedPeople)),
          message('oauth-clients.delete-effect'),
        ],
        toType: name,
        button: message('oauth-clients.delete'),
      };
    },
    async end(ctx, client) {
      await remove(ctx, client);
      return { said: DELETED, url: LIST };
    },
    already: DELETED,
    back: (ctx) => urlOf(ownClientOf(ctx), 'settings'),
  });
}
