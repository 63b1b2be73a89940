/** `/profile/oauth-clients/:id/delete`: asks for the name, then deletes a client and its tokens. */
import type { Context, Next } from 'koa';
import type { Activity } from '../../accounts/activity/activity.ts';
import type { RemoveClient } from '../../authorizations/endings.ts';
import type { Text } from '../../base/message.ts';
import { Refusal } from '../../base/refusal.ts';
import { peopleText } from '../../clients/client-row.ts';
import { normalizeClientName } from '../../clients/client-rules.ts';
import { formOf } from '../../provider/form.ts';
import { requestOrigin } from '../page.ts';
import type { PageKit } from '../page-kit.ts';
import { get, post, type Route } from '../routes.ts';
import { accountOf, NOTHING_SENT, typedOf } from '../signed-in.ts';
import { CLIENT, LIST, type OwnClientPages, ownClientOf, urlOf } from './own-client.ts';

const PATH = `${CLIENT}/delete`;
const DELETED = 'The client is deleted. Everything that was issued to it has ended.';

export function deleteClientPage(parts: {
  readonly kit: PageKit;
  readonly own: OwnClientPages;
  readonly removeClient: RemoveClient;
  readonly activity: Pick<Activity, 'record'>;
}): Route[] {
  const { kit, own, removeClient, activity } = parts;

  function draw(ctx: Context, typedName = '', problem?: Text): Promise<void> {
    const { id, name, connectedPeople } = ownClientOf(ctx);
    return kit.render(ctx, 'oauth-client-delete', {
      name,
      connectedPeople: peopleText(connectedPeople),
      notice: typedOf(ctx) && NOTHING_SENT,
      action: ctx.path,
      typedName,
      problem,
      cancel: urlOf({ id }, 'settings'),
    });
  }

  const show = (ctx: Context): Promise<void> => draw(ctx, typedOf(ctx)?.get('confirm_name') ?? '');

  /** Continues if the name of the client was typed. */
  async function check(ctx: Context, next: Next): Promise<void> {
    const typed = formOf(ctx).get('confirm_name') ?? '';
    if (normalizeClientName(typed) === ownClientOf(ctx).name) return next();
    ctx.status = 422;
    await draw(ctx, typed, 'This is not the name of the client. Type it exactly as shown above.');
  }

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

  return [get(PATH, ...own.page, show), post(PATH, ...own.form(), check, kit.requireRecentSignIn, submit)];
}
