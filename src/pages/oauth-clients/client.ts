/** `/profile/oauth-clients/:id`: one client of a person, its settings, its secrets, its problems. */
import type { Context, Next } from 'koa';
import type { Action, Activity } from '../../accounts/activity.ts';
import { hasSecret } from '../../clients/client.ts';
import { normalizeClientName } from '../../clients/client-rules.ts';
import { LIVE_SECRETS } from '../../clients/client-secret.ts';
import type { OwnedClient } from '../../clients/owned-clients.ts';
import { ENDPOINT } from '../../provider/endpoints.ts';
import { formOf } from '../../provider/form.ts';
import { Refusal } from '../../refusal.ts';
import { momentOf, momentOrNothing } from '../moment.ts';
import { originOf, seeOther } from '../page.ts';
import { get, type PageParts, post, type Redraw, type Route } from '../routes.ts';
import { accountOf, NOTHING_SENT, typedOf } from '../signed-in.ts';
import type { ConfirmView } from '../view-data.ts';
import type { ShownSecret } from './created.ts';
import {
  type ClientFormFindings,
  checkClientForm,
  clientFormView,
  isFine,
  readClientForm,
  type TypedClient,
} from './form.ts';
import { CLIENT, type OwnClientSteps, ownClientOf, urlOf } from './own-client.ts';
import { problemRowsOf } from './problem-rows.ts';
import { secretRowsOf } from './secret-rows.ts';
import { type ClientSnippet, clientSnippets } from './snippets.ts';
import { isTestable, testFormOf } from './test.ts';
import type { ClientSecretsView, SecretRow } from './view.ts';

const ROTATE = `${CLIENT}/rotate-secret`;
const REMOVE = `${CLIENT}/remove-secret`;
const SAVED = 'The changes are saved.';
const SECRET_REMOVED = 'The secret is removed. Requests that use it are refused from now on.';

interface Refused {
  readonly typed?: TypedClient;
  readonly findings?: ClientFormFindings;
  readonly problem?: string;
}

export function oauthClientRoutes(parts: PageParts, own: OwnClientSteps): Route[] {
  const { issuer, host, clock, clients, activity, shownOnce } = parts;
  const { requireRecentSignIn } = parts.steps;

  const record = (
    ctx: Context,
    action: Action,
    details: Readonly<Record<string, string | readonly string[]>>,
    tx: Parameters<Activity['record']>[1],
  ): Promise<void> => {
    const { id, name } = ownClientOf(ctx);
    const entry = { action, actor: 'person', accountId: accountOf(ctx).id } as const;
    const all = { client_id: id, client_name: name, ...details };
    return activity.record({ ...entry, details: all, origin: originOf(ctx) }, tx);
  };

  async function draw(ctx: Context, refused: Refused = {}): Promise<void> {
    const client = ownClientOf(ctx);
    const { typed = { ...client, rows: 'sent' }, ...findings } = refused;
    const frame = { action: urlOf(client), button: 'Save changes', ...findings };
    await host.render(ctx, 'oauth-client', {
      notice: typedOf(ctx) ? NOTHING_SENT : await host.notices.take(ctx),
      client: {
        id: client.id,
        name: client.name,
        isSuspended: client.isSuspended,
        created: momentOf(client.createdAt),
        connectedPeople: client.connectedPeople,
        lastUsed: momentOrNothing(client.lastUsedAt),
      },
      endpoints: [
        { label: 'Authorization endpoint', url: issuer + ENDPOINT.authorization },
        { label: 'Token endpoint', url: issuer + ENDPOINT.token },
        { label: 'Metadata, for libraries that discover these', url: issuer + ENDPOINT.metadata },
      ],
      test: isTestable(client) ? testFormOf(client) : undefined,
      snippets: snippetsOf(client),
      form: clientFormView(typed, client, frame),
      secrets: hasSecret(client.kind) ? secretsOf(client) : undefined,
      problems: problemRowsOf(await parts.clientProblems.of(client.id), client.redirectUris),
      deleteUrl: `${urlOf(client)}/delete`,
    });
  }

  function snippetsOf({ id: clientId, kind, redirectUris }: OwnedClient): ClientSnippet[] {
    const [redirectUri] = redirectUris;
    if (!hasSecret(kind) || redirectUri === undefined) return [];
    return clientSnippets({ issuer, clientId, redirectUri });
  }

  function secretsOf(client: OwnedClient): ClientSecretsView {
    const count = client.secrets.length;
    return {
      live: secretRowsOf(client.secrets, clock()),
      rotateUrl: count < LIVE_SECRETS ? `${urlOf(client)}/rotate-secret` : undefined,
      removeUrl: count > 1 ? `${urlOf(client)}/remove-secret` : undefined,
    };
  }

  /** Draws the page again with what was refused; nothing was changed. */
  async function drawRefusal(ctx: Context, error: unknown, typed?: TypedClient): Promise<void> {
    if (!(error instanceof Refusal)) throw error;
    ctx.status = 422;
    const problem = `${error.message} ${error.remedy}`;
    await draw(ctx, { ...(typed && { typed }), problem });
  }

  /** With what was sent. Nobody else has this client. */
  const redraw: Redraw = {
    isForEverybody: false,
    draw: (ctx, problem) =>
      own.requireOwnClient(ctx, () =>
        draw(ctx, { typed: readClientForm(formOf(ctx), ownClientOf(ctx)), problem }),
      ),
  };

  function show(ctx: Context): Promise<void> {
    // The page before this one may have shown a secret, which the browser would keep for its Back
    // button, `no-store` or not.
    if (ctx.query.from === 'secret') ctx.set('Clear-Site-Data', '"cache"');
    const typed = typedOf(ctx);
    return draw(ctx, typed && { typed: readClientForm(typed, ownClientOf(ctx)) });
  }

  /** Goes on with changes that were sent and are fine. */
  async function check(ctx: Context, next: Next): Promise<void> {
    const client = ownClientOf(ctx);
    const typed = readClientForm(formOf(ctx), client);
    if (typed.rows !== 'sent') return draw(ctx, { typed });
    if (isUnchanged(typed, client)) return host.notices.tell(ctx, urlOf(client), SAVED);
    const findings = checkClientForm(typed, client);
    if (isFine(findings)) return next();
    ctx.status = 422;
    await draw(ctx, { typed, findings });
  }

  /** Who may change a redirect URI, gets the codes of other people. */
  async function save(ctx: Context): Promise<void> {
    const client = ownClientOf(ctx);
    const typed = readClientForm(formOf(ctx), client);
    const { name, redirectUris } = typed;
    const details = { client_name: normalizeClientName(name), redirect_uris: redirectUris };
    try {
      await clients.edit(client.id, { name, redirectUris }, (tx) =>
        record(ctx, 'client_changed', details, tx),
      );
      await host.notices.tell(ctx, urlOf(client), SAVED);
    } catch (error) {
      await drawRefusal(ctx, error, typed);
    }
  }

  async function rotateSecret(ctx: Context): Promise<void> {
    const client = ownClientOf(ctx);
    try {
      const { secret } = await clients.addSecret(client.id, (tx, { lastFour }) =>
        record(ctx, 'client_secret_added', { last_four: lastFour }, tx),
      );
      const shown: ShownSecret = { clientId: client.id, value: secret, isOfNewClient: false };
      const once = await shownOnce.keep(accountOf(ctx).id, shown);
      seeOther(ctx, `${urlOf(client)}/created?once=${once}`);
    } catch (error) {
      await drawRefusal(ctx, error);
    }
  }

  /** `?secret_id=…` */
  async function askToRemoveSecret(ctx: Context): Promise<void> {
    const client = ownClientOf(ctx);
    const { secret_id: id } = ctx.query;
    // Whoever had to sign in before a button worked comes back without it.
    if (id === undefined || client.secrets.length < 2) return seeOther(ctx, urlOf(client));
    const secret = secretRowsOf(client.secrets, clock()).find((row) => row.id === id);
    if (!secret) ctx.throw(404, 'no such secret of this client');
    await host.render(ctx, 'confirm', {
      section: 'oauth-clients',
      question: 'Remove',
      subject: `the secret ending in ${secret.lastFour} of ${client.name}`,
      ...lastUseOf(secret),
      action: ctx.path,
      fields: [{ name: 'secret_id', value: secret.id }],
      button: 'Remove secret',
      cancel: urlOf(client),
    });
  }

  async function removeSecret(ctx: Context): Promise<void> {
    const client = ownClientOf(ctx);
    try {
      await clients.removeSecret(client.id, formOf(ctx).get('secret_id') ?? '', (tx, secret) =>
        record(ctx, 'client_secret_removed', { last_four: secret.lastFour }, tx),
      );
      await host.notices.tell(ctx, urlOf(client), SECRET_REMOVED);
    } catch (error) {
      if (error instanceof Refusal && error.code === 'secret_unknown') ctx.throw(404);
      await drawRefusal(ctx, error);
    }
  }

  /** Whoever had to sign in before a button worked comes back with GET, to press it again. */
  const backToClient = (ctx: Context): void => seeOther(ctx, urlOf(ownClientOf(ctx)));

  return [
    get(CLIENT, ...own.page, show),
    post(CLIENT, ...own.form(redraw), check, requireRecentSignIn, save),
    get(ROTATE, ...own.page, backToClient),
    post(ROTATE, ...own.form(), requireRecentSignIn, rotateSecret),
    get(REMOVE, ...own.page, askToRemoveSecret),
    post(REMOVE, ...own.form(), requireRecentSignIn, removeSecret),
  ];
}

/** Nothing is asked and nothing recorded for it. */
const isUnchanged = ({ name, redirectUris }: TypedClient, client: OwnedClient): boolean =>
  normalizeClientName(name) === client.name &&
  redirectUris.length === client.redirectUris.length &&
  redirectUris.every((uri, row) => uri === client.redirectUris[row]);

/** Whether something would stop. */
function lastUseOf(secret: SecretRow): Pick<ConfirmView, 'warning' | 'consequences'> {
  const { lastFour, lastUsed, created, isSafeToRemove } = secret;
  const what = `gate_cs_…${lastFour}`;
  const end =
    'Requests that use it are refused from the next one on; those that use the other secret are ' +
    'not. This cannot be undone.';
  const use = lastUsed
    ? `${what} was last used on ${lastUsed.text}`
    : `${what} was made on ${created.text} and never used`;
  if (isSafeToRemove) return { consequences: [`${use}: it is safe to remove.`, end] };
  return { warning: `${use}. Make sure that nothing needs it any more.`, consequences: [end] };
}
