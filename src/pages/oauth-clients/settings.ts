/** `/profile/oauth-clients/:id/settings`: the name and the redirect URIs of a client. */
import type { Context, Next } from 'koa';
import { message, type Text } from '../../base/message.ts';
import { Refusal } from '../../base/refusal.ts';
import type { ClientRegistry } from '../../clients/client-registry.ts';
import type { OwnedClient } from '../../clients/client-row.ts';
import { normalizeClientName } from '../../clients/client-rules.ts';
import { formOf } from '../../provider/form.ts';
import { seeOther } from '../page.ts';
import type { PageKit } from '../page-kit.ts';
import { get, post, type Redraw, type Route } from '../routes.ts';
import { NOTHING_SENT, typedOf } from '../signed-in.ts';
import {
  type ClientFormFindings,
  checkClientForm,
  clientFormView,
  isFine,
  mergeChanges,
  readClientForm,
  refusalText,
  refusedForm,
  stampOf,
  type TypedClient,
} from './client-form.ts';
import { CLIENT, type OwnClientPages, ownClientOf, urlOf } from './own-client.ts';

const PATH = `${CLIENT}/settings`;
const REGISTER = `${CLIENT}/redirect-uris`;
const ALWAYS_ASK = `${PATH}/always-ask`;
const SAVED = message('client-form.saved');
const CHANGED = message('client-form.changed');
const REGISTERED = message('client-form.registered');

interface Refused {
  readonly typed?: TypedClient;
  readonly findings?: ClientFormFindings;
  readonly problem?: Text;
  readonly changes?: readonly Text[];
}

export function clientSettingsPage(parts: {
  readonly kit: PageKit;
  readonly own: OwnClientPages;
  readonly clients: Pick<ClientRegistry, 'edit' | 'addRedirectUri' | 'setAlwaysAsks'>;
}): Route[] {
  const { kit, own, clients } = parts;

  async function draw(ctx: Context, refused: Refused = {}): Promise<void> {
    const client = ownClientOf(ctx);
    const asItIs: TypedClient = { ...client, rows: 'sent', drawnFrom: stampOf(client) };
    const { typed = asItIs, ...findings } = refused;
    const frame = { action: urlOf(client, 'settings'), button: message('client-form.save'), ...findings };
    await kit.render(ctx, 'oauth-client-settings', {
      head: await own.head(ctx, 'settings'),
      notice: typedOf(ctx) ? NOTHING_SENT : await kit.notices.take(ctx),
      form: clientFormView(typed, client, frame),
      alwaysAsk: client.kind === 'confidential' ? client.alwaysAsks : undefined,
      isAskedForOperator: client.asksForOperator,
      deleteUrl: `${urlOf(client)}/delete`,
    });
  }

  /** Renders the form again, but only for the owner: no other user has a page of this client. */
  const redraw: Redraw = {
    isForEverybody: false,
    draw: (ctx, problem) =>
      own.requireOwnClient(ctx, () => draw(ctx, { typed: readClientForm(formOf(ctx), ownClientOf(ctx)), problem })),
  };

  function show(ctx: Context): Promise<void> {
    const typed = typedOf(ctx);
    return draw(ctx, typed && { typed: readClientForm(typed, ownClientOf(ctx)) });
  }

  /** Continues if the entered values are valid changes. */
  async function check(ctx: Context, next: Next): Promise<void> {
    const client = ownClientOf(ctx);
    const typed = readClientForm(formOf(ctx), client);
    if (typed.rows !== 'sent') return draw(ctx, { typed });
    if (isUnchanged(typed, client)) return kit.notices.redirect(ctx, urlOf(client, 'settings'), SAVED);
    if (mergeChanges(typed, client)) return drawMerged(ctx);
    const findings = checkClientForm(typed, client);
    if (isFine(findings)) return next();
    ctx.status = 422;
    await draw(ctx, { typed, findings });
  }

  /** Renders the entered values, merged with changes from another tab or user; saves nothing. */
  async function drawMerged(ctx: Context): Promise<void> {
    const client = ownClientOf(ctx);
    const typed = readClientForm(formOf(ctx), client);
    const merged = mergeChanges(typed, client) ?? { typed, changes: [] };
    ctx.status = 409;
    await draw(ctx, { ...merged, problem: CHANGED });
  }

  /** Requires a recent sign-in, because a new redirect URI can receive the codes of other users. */
  async function save(ctx: Context): Promise<void> {
    const client = ownClientOf(ctx);
    const typed = readClientForm(formOf(ctx), client);
    const { name, redirectUris } = typed;
    const details = { client_name: normalizeClientName(name), redirect_uris: redirectUris };
    const changes = { name, redirectUris };
    try {
      await clients.edit(client.id, changes, (tx) => own.record(ctx, 'client_changed', details, tx), { from: client });
      await kit.notices.redirect(ctx, urlOf(client, 'settings'), SAVED);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      // The client changed after `requireOwnClient` had read it: read it again.
      if (error.code === 'client_changed') return own.requireOwnClient(ctx, () => drawMerged(ctx));
      ctx.status = 422;
      await draw(ctx, { typed, ...refusedForm(error) });
    }
  }

  const uriToRegister = (ctx: Context): string => formOf(ctx).get('redirect_uri') ?? '';

  /** Adds one URI; shows an invalid one with its problem, as if the user had typed it. */
  async function checkOneMore(ctx: Context, next: Next): Promise<void> {
    const client = ownClientOf(ctx);
    const uris = [...new Set([...client.redirectUris, uriToRegister(ctx)])];
    const typed = { name: client.name, redirectUris: uris, rows: 'sent' } as const;
    const findings = checkClientForm(typed, client);
    if (isFine(findings)) return next();
    ctx.status = 422;
    await draw(ctx, { typed: { ...typed, drawnFrom: stampOf(client) }, findings });
  }

  async function register(ctx: Context): Promise<void> {
    const client = ownClientOf(ctx);
    const uri = uriToRegister(ctx);
    try {
      await clients.addRedirectUri(client.id, uri, (tx, { redirectUris }) =>
        own.record(ctx, 'client_changed', { redirect_uris: redirectUris }, tx),
      );
      await kit.notices.redirect(ctx, urlOf(client, 'connect'), REGISTERED);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      ctx.status = 422;
      await own.requireOwnClient(ctx, () => draw(ctx, refusedForm(error)));
    }
  }

  /** Requires a recent sign-in, because it also stops asking. */
  async function setAlwaysAsks(ctx: Context): Promise<void> {
    const asked = formOf(ctx).get('always_ask');
    if (asked !== 'yes' && asked !== 'no') return backToSettings(ctx);
    const isOn = asked === 'yes';
    const { id } = ownClientOf(ctx);
    const details = { always_ask: isOn ? 'yes' : 'no' };
    let said: Text = message('always-ask.saved', { isOn: String(isOn) });
    try {
      await clients.setAlwaysAsks(id, isOn, 'owner', (tx) => own.record(ctx, 'client_changed', details, tx));
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      said = refusalText(error);
    }
    await kit.notices.redirect(ctx, urlOf(ownClientOf(ctx), 'settings'), said);
  }

  /** Redirects users who had to sign in first: they return with GET and press the button again. */
  const backToClient = (ctx: Context): void => seeOther(ctx, urlOf(ownClientOf(ctx)));
  const backToSettings = (ctx: Context): void => seeOther(ctx, urlOf(ownClientOf(ctx), 'settings'));

  return [
    get(PATH, ...own.page, show),
    post(PATH, ...own.form(redraw), check, kit.requireRecentSignIn, save),
    get(REGISTER, ...own.page, backToClient),
    get(ALWAYS_ASK, ...own.page, backToSettings),
    post(ALWAYS_ASK, ...own.form(), kit.requireRecentSignIn, setAlwaysAsks),
    post(REGISTER, ...own.form(), checkOneMore, kit.requireRecentSignIn, register),
  ];
}

/** True if nothing changed: then no recent sign-in is required and nothing is recorded. */
const isUnchanged = ({ name, redirectUris }: TypedClient, client: OwnedClient): boolean =>
  normalizeClientName(name) === client.name &&
  redirectUris.length === client.redirectUris.length &&
  redirectUris.every((uri, row) => uri === client.redirectUris[row]);
