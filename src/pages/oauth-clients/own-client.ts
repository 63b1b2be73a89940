/** What all pages about one client share: paths, tabs, and the step that refuses everyone except the owner. */
import type { Context, Middleware, Next } from 'koa';
import type { Activity } from '../../accounts/activity/activity.ts';
import type { Action } from '../../accounts/activity/activity-words.ts';
import { message } from '../../base/message.ts';
import { requestState } from '../../base/request-state.ts';
import { hasSecret } from '../../clients/client.ts';
import type { ClientRegistry } from '../../clients/client-registry.ts';
import type { ClientRequests } from '../../clients/client-requests.ts';
import type { OwnedClient } from '../../clients/client-row.ts';
import { originInSession } from '../page.ts';
import type { PageKit } from '../page-kit.ts';
import { accountOf } from '../signed-in.ts';

export const LIST = '/profile/oauth-clients';
export const CLIENT = `${LIST}/:id`;

/** The pages about a client. Each name except `overview` is the last segment of the page's path. */
const PARTS = ['overview', 'connect', 'settings', 'secrets', 'problems'] as const;

export type ClientPart = (typeof PARTS)[number];

export const urlOf = ({ id }: Pick<OwnedClient, 'id'>, part: ClientPart = 'overview'): string =>
  part === 'overview' ? `${LIST}/${id}` : `${LIST}/${id}/${part}`;

const NOT_THEIRS = 'no such client of this person';

const ownClients = requestState<OwnedClient>('requireOwnClient');

/** Returns the client that `requireOwnClient` has found. */
export const ownClientOf = ownClients.get;

type Transaction = Parameters<ClientRegistry['isOwnedBy']>[2];
export type OwnClientPages = ReturnType<typeof createOwnClientPages>;

export function createOwnClientPages(parts: {
  readonly kit: PageKit;
  readonly clients: ClientRegistry;
  readonly clientRequests: Pick<ClientRequests, 'openCounts'>;
  readonly activity: Activity;
}) {
  const { kit, clients, clientRequests, activity } = parts;

  async function requireOwnClient(ctx: Context, next: Next): Promise<void> {
    const client = await clients.findByOwner(accountOf(ctx).id, String(ctx.params.id));
    if (!client) ctx.throw(404, NOT_THEIRS);
    ownClients.set(ctx, client);
    await next();
  }

  /** Checks again who owns the client. @param tx a transaction that has changed or locked the client */
  async function requireStillOwned(ctx: Context, tx: Transaction): Promise<void> {
    const isOwned = await clients.isOwnedBy(accountOf(ctx).id, ownClientOf(ctx).id, tx);
    if (!isOwned) ctx.throw(404, NOT_THEIRS);
  }

  return {
    /** Answers 404 to every user except the owner of the client that the path names. */
    requireOwnClient,
    page: [kit.requireSignedIn, requireOwnClient],
    /** Checks the owner of the client last: a form that was rendered for another user must not be answered with 404. */
    form: (): readonly Middleware[] => [...kit.ownForm(), requireOwnClient],

    async head(ctx: Context, part: ClientPart) {
      const client = ownClientOf(ctx);
      const count = (await clientRequests.openCounts(client.id)).get(client.id) ?? 0;
      return {
        name: client.name,
        isSuspended: client.isSuspended,
        parts: PARTS.filter((name) => name !== 'secrets' || name === part || hasSecret(client.kind)).map((name) => ({
          url: urlOf(client, name),
          label: message(`client.part-${name}`),
          isOverview: name === 'overview',
          isCurrent: name === part,
          ...(name === 'problems' && { count }),
        })),
      };
    },

    requireStillOwned,

    async record(
      ctx: Context,
      action: Action,
      details: Readonly<Record<string, string | readonly string[]>>,
      tx: Transaction,
    ): Promise<void> {
      await requireStillOwned(ctx, tx);
      const { id, name } = ownClientOf(ctx);
      const entry = { action, actor: 'person', accountId: accountOf(ctx).id } as const;
      const all = { client_id: id, client_name: name, ...details };
      return activity.record({ ...entry, details: all, origin: originInSession(ctx) }, tx);
    },
  };
}
