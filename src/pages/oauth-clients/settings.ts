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
  readonly clients: Pick<ClientRegistry, 'edit' | 'setAlwaysAsks'>;
}): Route[] {
  const { kit, own, clients } = parts;

  const asStored = (client: OwnedClient): TypedClient => ({ ...client, rows: 'sent', drawnFrom: stampOf(client) });
  const registered = (ctx: Context) => ({ url: urlOf(ownClientOf(ctx), 'connect'), said: REGISTERED });
  const settingsOf = (ctx: Context): string => urlOf(ownClientOf(ctx), 'settings');

  function conflict(ctx: Context, { name, redirectUris }: TypedClient): Answer<TypedClient> {
    const entered = message('client-form.entered', { values: [name, ...redirectUris].join(', ') });
    return { status: 409, typed: asStored(ownClientOf(ctx)), said: [CHANGED, entered] };
  }

  const checked = (typed: TypedClient, client: OwnedClient, done: Answer<TypedClient>) =>
    typed.rows === 'sent' && isUnchanged(typed, client) ? done : checkClientForm(typed, client);

  /** Needs a recent sign-in, because a new redirect URI can receive the codes of other users. */
  async function save(ctx: Context, typed: TypedClient, done: Answer<TypedClient>): Promise<Answer<TypedClient>> {
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
      // If a form was sent twice at the same time, answer both requests as saved.
      return isUnchanged(typed, ownClientOf(ctx)) ? done : conflict(ctx, typed);
    }
    return done;
  }

  const page = {
    admit: [own.requireOwnClient],
    // Do not show a form again that was rendered for another user: only the client's owner can open this page.
    isForEverybody: false,
    fieldOf: fieldOfClient,
    async draw(ctx: Context, typed: TypedClient, { notice, problems }: Said): Promise<void> {
      const client = ownClientOf(ctx);
      const frame = { action: settingsOf(ctx), button: message('client-form.save'), problems };
      await kit.render(ctx, 'oauth-client-settings', {
        head: await own.head(ctx, 'settings'),
        notice,
        form: clientFormView(typed, client, frame),
        ...choicesFor(client),
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
      // Every form that Gatehouse renders has this field, but a program may send a form without it.
      const isOld = typed.drawnFrom !== undefined && typed.drawnFrom !== stampOf(client);
      const isConflict = typed.rows === 'sent' && isOld && !isUnchanged(typed, client);
      return isConflict ? conflict(ctx, typed) : checked(typed, client, { url: settingsOf(ctx), said: SAVED });
    },
    save: (ctx, typed) => save(ctx, typed, { url: settingsOf(ctx), said: SAVED }),
  });

  /** Registers one more redirect URI. If the URI is invalid, the form with all redirect URIs shows the problem. */
  const registering = formRoutes<TypedClient>(kit, {
    ...page,
    path: `${CLIENT}/redirect-uris`,
    read(form, ctx) {
      const { redirectUris, ...stored } = asStored(ownClientOf(ctx));
      return { ...stored, redirectUris: [...new Set([...redirectUris, form.get('redirect_uri') ?? ''])] };
    },
    stored: (ctx) => ({ page: urlOf(ownClientOf(ctx)) }),
    check: (ctx, typed) => checked(typed, ownClientOf(ctx), registered(ctx)),
    save: (ctx, typed) => save(ctx, typed, registered(ctx)),
  });

  /** Needs a recent sign-in, because this form can turn off the consent question for users. */
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

export const choicesFor = (client: OwnedClient) => ({
  /** True if users are asked for consent at each request; undefined for a kind of client without this choice. */
  alwaysAsk: client.kind === 'confidential' ? client.alwaysAsks : undefined,
  /** True if the operator has set `alwaysAsk`, so that the owner cannot change it. */
  isAskedForOperator: client.asksForOperator,
  linksUrl: `${urlOf(client)}/links`,
  deleteUrl: `${urlOf(client)}/delete`,
});

const choiceIn = (ctx: Context): string => formOf(ctx).get('always_ask') ?? '';

/** An unchanged form needs no recent sign-in, and is not recorded. */
const isUnchanged = ({ name, redirectUris }: TypedClient, client: OwnedClient): boolean =>
  normalizeClientName(name) === client.name &&
  redirectUris.length === client.redirectUris.length &&
  redirectUris.every((uri, row) => uri === client.redirectUris[row]);
