/** Route step of the pages about one client: only its owner gets on. */
import type { Context, Next } from 'koa';
import type { ClientRegistry } from '../../clients/client-registry.ts';
import type { OwnedClient } from '../../clients/owned-clients.ts';
import { accountOf } from '../signed-in.ts';

const ownClients = new WeakMap<Context, OwnedClient>();

/** The client of `requireOwnClient`. */
export function ownClientOf(ctx: Context): OwnedClient {
  const client = ownClients.get(ctx);
  if (!client) throw new TypeError('requireOwnClient must come before');
  return client;
}

/**
 * After `requireSignedIn`: goes on with the client of the path (see `ownClientOf`) if this person
 * owns it. Somebody else's answers as if there were none, whatever the method.
 */
export function ownClientStep(clients: Pick<ClientRegistry, 'findByOwner'>) {
  return async function requireOwnClient(ctx: Context, next: Next): Promise<void> {
    const client = await clients.findByOwner(accountOf(ctx).id, String(ctx.params.id));
    if (!client) ctx.throw(404, 'no such client of this person');
    ownClients.set(ctx, client);
    await next();
  };
}
