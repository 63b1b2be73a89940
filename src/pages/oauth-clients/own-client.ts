/** Where the pages of a person's clients are, and the step of those about one: only its owner gets on. */
import type { Context, Middleware, Next } from 'koa';
import type { OwnedClient } from '../../clients/owned-clients.ts';
import { requestState } from '../../request-state.ts';
import type { PageParts, Redraw } from '../routes.ts';
import { accountOf } from '../signed-in.ts';

export const LIST = '/profile/oauth-clients';
/** The route of one client. */
export const CLIENT = `${LIST}/:id`;

export const urlOf = ({ id }: Pick<OwnedClient, 'id'>): string => `${LIST}/${id}`;

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
