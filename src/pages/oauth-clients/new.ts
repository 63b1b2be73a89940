/** `/profile/oauth-clients/new`: a user registers a confidential client. */
import type { Activity } from '../../accounts/activity/activity.ts';
import type { OneTimeValues } from '../../accounts/one-time-values.ts';
import { message, type Text } from '../../base/message.ts';
import type { ClientRegistry } from '../../clients/client-registry.ts';
import { normalizeClientName } from '../../clients/client-rules.ts';
import { formOf } from '../../provider/form.ts';
import { formRoutes } from '../form-step.ts';
import { newCreationKey, sentFormFrom } from '../forms/sent-form.ts';
import { originInSession } from '../page.ts';
import type { PageKit } from '../page-kit.ts';
import type { Route } from '../routes.ts';
import { accountOf } from '../signed-in.ts';
import {
  type ClientFormView,
  checkClientForm,
  clientFormView,
  fieldOfClient,
  readClientForm,
  type TypedClient,
} from './client-form.ts';
import { LIST, urlOf } from './own-client.ts';
import type { ShownSecret } from './secrets.ts';

declare module '../view-data.ts' {
  interface ViewData {
    readonly 'oauth-client-new': { readonly notice: Text | undefined; readonly form: ClientFormView };
  }
}

/** The only kind of client that users can register. Operators can add every kind. */
export const SELF_SERVICE = { kind: 'confidential', isNative: false } as const;

export function newClientPage(parts: {
  readonly kit: PageKit;
  readonly clients: ClientRegistry;
  readonly activity: Activity;
  readonly oneTimeValues: OneTimeValues;
  readonly limit: number;
}): Route[] {
  const { kit, clients, activity, oneTimeValues, limit } = parts;

  return formRoutes<TypedClient>(kit, {
    path: `${LIST}/new`,
    isForEverybody: true,
    read: (form) => readClientForm(form, SELF_SERVICE),
    stored: () => ({ name: '', redirectUris: [], rows: 'changed' }),
    draw(ctx, typed, { notice, problems }) {
      const button = message('oauth-clients.create');
      const frame = { action: ctx.path, button, problems, creationKey: newCreationKey() };
      return kit.render(ctx, 'oauth-client-new', { notice, form: clientFormView(typed, SELF_SERVICE, frame) });
    },
    fieldOf: fieldOfClient,
    check: (_ctx, typed) => checkClientForm(typed, SELF_SERVICE),
    async save(ctx, { name, redirectUris }) {
      const accountId = accountOf(ctx).id;
      const sent = sentFormFrom(formOf(ctx), [name, ...redirectUris]);
      const details = { client_name: normalizeClientName(name), redirect_uris: redirectUris };
      const entry = { action: 'client_added', actor: 'person', accountId, origin: originInSession(ctx) } as const;
      const client = await clients.addOnce(
        { ...SELF_SERVICE, name, redirectUris, ownerAccountId: accountId, maxOfOwner: limit },
        {
          key: sent.key,
          keep(clientId, value) {
            const shown: ShownSecret = { clientId, value, isOfNewClient: true };
            return oneTimeValues.store(accountId, shown, sent.shownAs(clientId));
          },
        },
        (tx, clientId) => activity.record({ ...entry, details: { client_id: clientId, ...details } }, tx),
      );
      return { url: `${urlOf(client)}/created?once=${sent.shownAs(client.id)}` };
    },
  });
}
