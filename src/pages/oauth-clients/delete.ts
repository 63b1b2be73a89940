/** `/profile/oauth-clients/:id/delete`: asks for the name, then deletes a client and its tokens. */
import type { Context } from 'koa';
import type { Activity } from '../../accounts/activity/activity.ts';
import type { RemoveClient } from '../../authorizations/endings.ts';
import { Refusal } from '../../base/refusal.ts';
import { peopleText } from '../../clients/client-row.ts';
import { requestOrigin } from '../page.ts';
import type { PageKit } from '../page-kit.ts';
import { get, post, type Route } from '../routes.ts';
import { accountOf } from '../signed-in.ts';
import { createNameConfirmation } from './confirm-name.ts';
import { CLIENT, LIST, type OwnClientPages, ownClientOf } from './own-client.ts';

const PATH = `${CLIENT}/delete`;
const DELETED = 'The client is deleted. Everything that was issued to it has ended.';

export function deleteClientPage(parts: {
  readonly kit: PageKit;
  readonly own: OwnClientPages;
  readonly removeClient: RemoveClient;
  readonly activity: Pick<Activity, 'record'>;
}): Route[] {
  const { kit, own, removeClient, activity } = parts;

  const confirmation = createNameConfirmation(kit, 'settings', ({ connectedPeople }) => {
    const people = peopleText(connectedPeople);
    return {
      act: 'Delete',
      lead:
        people === '0'
          ? 'No one has connected it.'
          : `${people} ${people === '1' ? 'person has' : 'people have'} it connected and would be disconnected.`,
      consequences: ['Its secrets and everything that was issued to it stop working at once. This cannot be undone.'],
    };
  });

  async function submit(ctx: Context): Promise<void> {
    const { id, name } = ownClientOf(ctx);
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
      // Ignore a refusal: a concurrent request has already deleted the client, as the user wanted.
      if (!(error instanceof Refusal)) throw error;
    });
    await kit.notices.redirect(ctx, LIST, DELETED);
  }

  return [
    get(PATH, ...own.page, confirmation.show),
    post(PATH, ...own.form(), confirmation.check, kit.requireRecentSignIn, submit),
  ];
}
