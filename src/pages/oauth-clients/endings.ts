/** `…/:id/renew` and `…/:id/delete`: end the secrets of a client, or the client, after the user has typed its name. */
import type { Context, Next } from 'koa';
import type { Activity } from '../../accounts/activity/activity.ts';
import type { AccountMail } from '../../accounts/mail/account-mail.ts';
import type { OneTimeValues } from '../../accounts/one-time-values.ts';
import type { RemoveClient } from '../../authorizations/endings.ts';
import { message } from '../../base/message.ts';
import { Refusal } from '../../base/refusal.ts';
import type { ClientRegistry } from '../../clients/client-registry.ts';
import { type OwnedClient, shownPeople } from '../../clients/client-row.ts';
import { isRenewable } from '../../clients/client-secrets.ts';
import { formOf } from '../../provider/form.ts';
import { type Ended, endingRoutes } from '../ending.ts';
import { sentFormFrom } from '../forms/sent-form.ts';
import { requestOrigin } from '../page.ts';
import type { PageKit } from '../page-kit.ts';
import type { Route } from '../routes.ts';
import { accountOf } from '../signed-in.ts';
import { CLIENT, LIST, type OwnClientPages, ownClientOf, urlOf } from './own-client.ts';
import type { ShownSecret } from './secrets.ts';

const DELETED = message('oauth-clients.deleted');

export function clientEndingPages(parts: {
  readonly kit: PageKit;
  readonly own: OwnClientPages;
  readonly clients: Pick<ClientRegistry, 'renew'>;
  readonly oneTimeValues: OneTimeValues;
  readonly mail: AccountMail | undefined;
  readonly removeClient: RemoveClient;
  readonly activity: Pick<Activity, 'record'>;
}): Route[] {
  const { kit, own, clients, oneTimeValues, mail, removeClient, activity } = parts;

  async function requireRenewable(ctx: Context, next: Next): Promise<void> {
    if (!isRenewable(ownClientOf(ctx).kind)) ctx.throw(404, 'this client cannot be renewed');
    await next();
  }

  async function renew(ctx: Context, { id, name }: OwnedClient): Promise<Ended> {
    const { id: accountId } = accountOf(ctx);
    const sent = sentFormFrom(formOf(ctx), [id]);
    const { lastFour } = await clients.renew(id, (tx, details) => own.record(ctx, 'client_renewed', details, tx), {
      key: sent.key,
      keep(secret) {
        const shown: ShownSecret = { clientId: id, value: secret.value, isOfNewClient: false, isOnlyOne: true };
        return oneTimeValues.store(accountId, shown, sent.shownAs(secret.lastFour));
      },
    });
    // Send the mail even if the form was sent again, because the first request may have stopped before its mail.
    mail?.notify(accountId, 'client_renewed', { origin: requestOrigin(ctx), about: name });
    return { url: `${urlOf({ id })}/created?once=${sent.shownAs(lastFour)}` };
  }

  /** Replaces all secrets of a client after a theft. */
  const renewing = endingRoutes<OwnedClient>(kit, {
    path: `${CLIENT}/renew`,
    admit: [own.requireOwnClient, requireRenewable],
    find: async (ctx) => ownClientOf(ctx),
    ask: (_ctx, { name }) => ({
      section: 'oauth-clients',
      heading: message('oauth-clients.renew-heading', { client: name }),
      consequences: [
        message('oauth-clients.renew-why'),
        message('oauth-clients.renew-effect'),
        message('oauth-clients.renew-until'),
      ],
      toType: name,
      button: message('oauth-clients.renew'),
    }),
    end: renew,
    already: message('oauth-clients.already-renewed'),
    back: (ctx) => urlOf(ownClientOf(ctx), 'secrets'),
  });

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

  /** Deletes a client and its tokens. */
  const deleting = endingRoutes<OwnedClient>(kit, {
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

  return [...renewing, ...deleting];
}
