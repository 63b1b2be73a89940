/** How a person ends the connection to a client: every authorization of it, everywhere, at once. */
import type { Activity, Origin } from '../accounts/activity.ts';
import type { ConnectedClient, Connections } from '../accounts/connections.ts';
import type { Grants } from './grants.ts';

export interface Disconnections {
  /** Ends the connection; the consent is forgotten. Ended already, there is nothing to do. */
  end(
    accountId: string,
    client: Pick<ConnectedClient, 'clientId' | 'name'>,
    origin: Origin,
  ): Promise<void>;
  /** Ends all of a person's connections. @returns how many it were. */
  endAll(accountId: string, origin: Origin): Promise<number>;
}

/** Grants that are revoked at the same time: somebody who signs in daily has hundreds. */
const BATCH = 50;

export function createDisconnections({
  connections,
  grants,
  activity,
}: {
  connections: Connections;
  grants: Grants;
  activity: Activity;
}): Disconnections {
  async function revokeAll(grantIds: readonly string[]): Promise<void> {
    for (let start = 0; start < grantIds.length; start += BATCH) {
      await Promise.all(grantIds.slice(start, start + BATCH).map(grants.revoke));
    }
  }

  const end: Disconnections['end'] = async (accountId, { clientId, name }, origin) => {
    // While they are still listed: if the token store fails here, it can be tried again.
    const known = await connections.grantsOf(accountId, clientId);
    await revokeAll(known);
    const details = { client_id: clientId, client_name: name };
    const ended = await connections.end(accountId, clientId, (tx) =>
      activity.record({ action: 'disconnected', actor: 'person', accountId, details, origin }, tx),
    );
    // Those that were issued meanwhile; from here on none is.
    await revokeAll(ended.filter((grantId) => !known.includes(grantId)));
  };

  return {
    end,
    async endAll(accountId, origin) {
      const connected = await connections.listOf(accountId);
      for (const client of connected) await end(accountId, client, origin);
      return connected.length;
    },
  };
}
