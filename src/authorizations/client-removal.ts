/** How a client ends, with everything that was issued to it. */
import type { Activity } from '../accounts/activity/activity.ts';
import type { ClientRegistry } from '../clients/client-registry.ts';
import type { Alongside } from '../storage/queries.ts';
import type { Connections } from './connections.ts';

/**
 * Ends the client and everything issued to it at once, then removes what it leaves behind. It may
 * have more connections than one statement may take time for; broken off in between, the removal
 * can be begun again.
 *
 * @param alongside told how many people had it connected.
 * @returns how many people had it connected.
 * @throws Refusal `client_unknown`
 */
export type RemoveClient = (id: string, alongside?: Alongside<number>) => Promise<number>;

export const createClientRemoval =
  ({
    clients,
    connections,
    activity,
  }: {
    readonly clients: Pick<ClientRegistry, 'suspend' | 'remove'>;
    readonly connections: Pick<Connections, 'removeSome'>;
    readonly activity: Activity;
  }): RemoveClient =>
  async (id, alongside) => {
    // From here on it is refused everywhere; what follows only tidies up.
    const { name } = await clients.suspend(id);
    const details = { client_id: id, client_name: name, cause: 'client_deleted' };
    let people = 0;
    let removed: readonly string[];
    do {
      removed = await connections.removeSome(id, (tx, accountIds) => {
        const entries = accountIds.map((accountId) => ({
          action: 'disconnected' as const,
          actor: 'service' as const,
          accountId,
          details,
        }));
        return activity.recordAll(entries, tx);
      });
      people += removed.length;
    } while (removed.length > 0);
    await clients.remove(id, (tx) => alongside?.(tx, people) ?? Promise.resolve());
    return people;
  };
