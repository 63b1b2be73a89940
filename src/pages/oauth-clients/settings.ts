/** `/profile/oauth-clients/:id/settings`: the name and the redirect URIs of a client. */
import type { Context } from 'koa';
import { message } from '../../base/message.ts';
import { Refusal } from '../../base/refusal.ts';
import type { ClientRegistry } from '../../clients/client-registry.ts';
import type { OwnedClient } from '../../clients/client-row.ts';
import { normalizeClientName } from '../../clients/client-rules.ts';
import { formOf } from '../../provider/form.ts';
import { type Answer, formRoutes, type Said } from '../form-step.ts';
import type { PageKit } from '../page-kit.ts';
import type { Route } from '../routes.ts';
import {
  checkClientForm,
  clientFormView,
  fieldOfClient,
  mergeChanges,
  readClientForm,
  stampOf,
  type TypedClient,
} from './client-form.ts';
import { CLIENT, type OwnClientPages, ownClientOf, urlOf } from './own-client.ts';

const PATH = `${CLIENT}/settings`;
const SAVED = message('client-form.saved');
const CHANGED = message('client-form.changed');
const REGISTERED = message('client-form.registered');

export function clientSettingsPage(parts: {
  readonly kit: PageKit;
  readonly own: OwnClientPages;
  readonly clients: Pick<ClientRegistry, 'edit' | 'addRedirectUri' | 'setAlwaysAsks'>;
}): Route[] {
  const { kit, own, clients } = parts;

  const asStored = (client: OwnedClient): TypedClient => ({ ...client, rows: 'sent', drawnFrom: stampOf(client) });
  const settingsOf = (ctx: Context): string => urlOf(ownClientOf(ctx), 'settings');

  /** If another tab has changed the client, returns the form with both changes instead of saving it. */
  function merged(ctx: Context, typed: TypedClient): Answer<TypedClient> | undefined {
    const merge = mergeChanges(typed, ownClientOf(ctx));
    return merge && { status: 409, typed: merge.typed, said: [CHANGED, ...merge.changes] };
  }

  const page = {
    admit: [own.requireOwnClient],
    // Only the owner has this page, so a form of another user is not shown again.
    isForEverybody: false,
    fieldOf: fieldOfClient,
    async draw(ctx: Context, typed: TypedClient, { notice, problems }: Said): Promise<void> {
      const client = ownClientOf(ctx);
      const frame = { action: settingsOf(ctx), button: message('client-form.save'), problems };
      await kit.render(ctx, 'oauth-client-settings', {
        head: await own.head(ctx, 'settings'),
        notice,
        form: clientFormView(typed, client, frame),
        alwaysAsk: client.kind === 'confidential' ? client.alwaysAsks : undefined,
        isAskedForOperator: client.asksForOperator,
        linksUrl: `${urlOf(client)}/links`,
        deleteUrl: `${urlOf(client)}/delete`,
      });
    },
  };

  const settings = formRoutes<TypedClient>(kit, {
    ...page,
    path: PATH,
    read: (form, ctx) => readClientForm(form, ownClientOf(ctx)),
    stored: (ctx) => asStored(ownClientOf(ctx)),
    check(ctx, typed) {
      const client = ownClientOf(ctx);
      if (typed.rows === 'sent') {
        if (isUnchanged(typed, client)) return { url: settingsOf(ctx), said: SAVED };
        const changed = merged(ctx, typed);
        if (changed) return changed;
      }
      return checkClientForm(typed, client);
    },
    /** Needs a recent sign-in, because a new redirect URI can receive the codes of other users. */
    async save(ctx, typed) {
      const client = ownClientOf(ctx);
      const { name, redirectUris } = typed;
      const details = { client_name: normalizeClientName(name), redirect_uris: redirectUris };
      const record = (tx: Parameters<typeof own.record>[3]) => own.record(ctx, 'client_changed', details, tx);
      try {
        await clients.edit(client.id, { name, redirectUris }, record, { from: client });
      } catch (error) {
        if (!(error instanceof Refusal && error.code === 'client_changed')) throw error;
        // The client was changed after `requireOwnClient` had read it, so read it again.
        await own.requireOwnClient(ctx, async () => {});
        return merged(ctx, typed) ?? { status: 409, said: [CHANGED] };
      }
      return { url: settingsOf(ctx), said: SAVED };
    },
  });

  /** Registers one more redirect URI. An invalid URI is shown with its problem in the form of all URIs. */
  const registering = formRoutes<TypedClient>(kit, {
    ...page,
    path: `${CLIENT}/redirect-uris`,
    read(form, ctx) {
      const { redirectUris, ...stored } = asStored(ownClientOf(ctx));
      return { ...stored, redirectUris: [...new Set([...redirectUris, uriIn(form)])] };
    },
    stored: (ctx) => ({ page: urlOf(ownClientOf(ctx)) }),
    check: (ctx, typed) => checkClientForm(typed, ownClientOf(ctx)),
    async save(ctx) {
      const client = ownClientOf(ctx);
      await clients.addRedirectUri(client.id, uriIn(formOf(ctx)), (tx, { redirectUris }) =>
        own.record(ctx, 'client_changed', { redirect_uris: redirectUris }, tx),
      );
      return { url: urlOf(client, 'connect'), said: REGISTERED };
    },
  });

  /** Needs a recent sign-in, because the form may end the consent question for users. */
  const asking = formRoutes<TypedClient>(kit, {
    ...page,
    path: `${PATH}/always-ask`,
    read: (_form, ctx) => asStored(ownClientOf(ctx)),
    stored: (ctx) => ({ page: settingsOf(ctx) }),
    check: (ctx) => (/^(yes|no)$/.test(choiceIn(ctx)) ? undefined : { url: settingsOf(ctx) }),
    async save(ctx) {
      const details = { always_ask: choiceIn(ctx) };
      const isOn = details.always_ask === 'yes';
      await clients.setAlwaysAsks(ownClientOf(ctx).id, isOn, 'owner', (tx) =>
        own.record(ctx, 'client_changed', details, tx),
      );
      return { url: settingsOf(ctx), said: message('always-ask.saved', { isOn: String(isOn) }) };
    },
  });

  return [...settings, ...registering, ...asking];
}

const choiceIn = (ctx: Context): string => formOf(ctx).get('always_ask') ?? '';
const uriIn = (form: URLSearchParams): string => form.get('redirect_uri') ?? '';

/** An unchanged form needs no recent sign-in, and is not recorded. */
const isUnchanged = ({ name, redirectUris }: TypedClient, client: OwnedClient): boolean =>
  normalizeClientName(name) === client.name &&
  redirectUris.length === client.redirectUris.length &&
  redirectUris.every((uri, row) => uri === client.redirectUris[row]);
