/** Where the pages of a person's clients are, and the step of those about one: only its owner gets on. */
import type { Context, Middleware, Next } from 'koa';
import type { Activity } from '../../accounts/activity/activity.ts';
import type { Action } from '../../accounts/activity/activity-words.ts';
import { requestState } from '../../base/request-state.ts';
import { hasSecret } from '../../clients/client.ts';
import type { OwnedClient } from '../../clients/client-row.ts';
import { originInSession } from '../page.ts';
import type { PageParts, Redraw } from '../routes.ts';
import { accountOf } from '../signed-in.ts';
import type { ClientHead } from './client-view.ts';

export const LIST = '/profile/oauth-clients';
/** The route of one client. */
export const CLIENT = `${LIST}/:id`;

/** The pages of one client, by the last part of their path; that of the first is the client's own. */
const PARTS = {
  '': 'Overview',
  connect: 'Connect',
  settings: 'Settings',
  secrets: 'Secrets',
  problems: 'Problems',
} as const;

export type ClientPart = keyof typeof PARTS;

/** @param part of its pages; its overview without one. */
export const urlOf = ({ id }: Pick<OwnedClient, 'id'>, part: ClientPart = ''): string =>
  part === '' ? `${LIST}/${id}` : `${LIST}/${id}/${part}`;

const ownClients = requestState<OwnedClient>('requireOwnClient');

/** The client of `requireOwnClient`. */
export const ownClientOf = ownClients.get;

/** What stands before the answers of the pages about one client. */
export interface OwnClientSteps {
  readonly page: readonly Middleware[];
  /** Whose client it is, is looked at last: only who the form was drawn for may learn that. */
  form(redraw?: Redraw): readonly Middleware[];
  /**
   * Goes on with the client of the path (see `ownClientOf`) if this person owns it. Somebody else's
   * answers as if there were none.
   */
  requireOwnClient(ctx: Context, next: Next): Promise<void>;
}

export function ownClientSteps({ steps, clients }: PageParts): OwnClientSteps {
  async function requireOwnClient(ctx: Context, next: Next): Promise<void> {
    const client = await clients.findByOwner(accountOf(ctx).id, String(ctx.params.id));
    if (!client) ctx.throw(404, 'no such client of this person');
    ownClients.set(ctx, client);
    await next();
  }
  return {
    requireOwnClient,
    page: [steps.requireSignedIn, requireOwnClient],
    form: (redraw) => [...steps.ownForm(redraw), requireOwnClient],
  };
}

/** What all pages of one client show around their own. */
export async function headOf(
  ctx: Context,
  part: ClientPart,
  { clientProblems }: Pick<PageParts, 'clientProblems'>,
): Promise<ClientHead> {
  const client = ownClientOf(ctx);
  const counts = await clientProblems.countsOf([client.id]);
  const names = Object.keys(PARTS) as ClientPart[];
  return {
    name: client.name,
    isSuspended: client.isSuspended,
    parts: names
      .filter((name) => name !== 'secrets' || name === part || hasSecret(client.kind))
      .map((name) => ({
        url: urlOf(client, name),
        label: PARTS[name],
        isCurrent: name === part,
        ...(name === 'problems' && { count: counts.get(client.id) ?? 0 }),
      })),
  };
}

/** Records it in the transaction in which it happens. */
export const recordingOf =
  ({ activity }: Pick<PageParts, 'activity'>) =>
  (
    ctx: Context,
    action: Action,
    details: Readonly<Record<string, string | readonly string[]>>,
    tx: Parameters<Activity['record']>[1],
  ): Promise<void> => {
    const { id, name } = ownClientOf(ctx);
    const entry = { action, actor: 'person', accountId: accountOf(ctx).id } as const;
    const all = { client_id: id, client_name: name, ...details };
    return activity.record({ ...entry, details: all, origin: originInSession(ctx) }, tx);
  };
