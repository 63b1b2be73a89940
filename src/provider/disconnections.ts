/** How the connection to a client ends: every authorization of it, everywhere, at once. */
import type { Activity, Origin } from '../accounts/activity.ts';
import type { ConnectedClient, Connections } from '../accounts/connections.ts';
import type { Revocations } from '../accounts/revocations.ts';
import type { Grants } from './grants.ts';

export interface Disconnections {
  /**
   * Ends the connection; the consent is forgotten. Ended already, there is nothing to do.
   *
   * @param origin of the person; without it, it is the operator who ends the connection.
   * @returns how many grants ended with it.
   */
  end(
    accountId: string,
    client: Pick<ConnectedClient, 'clientId' | 'name'>,
    origin?: Origin,
  ): Promise<number>;
  /** Ends all of a person's connections. @returns how many it were. */
  endAll(accountId: string, origin: Origin): Promise<number>;
}

/** Grants that are revoked at the same time: somebody who signs in daily has hundreds. */
const BATCH = 50;

export function createDisconnections({
  connections,
  grants,
  activity,
  revocations,
}: {
  connections: Connections;
  grants: Grants;
  activity: Activity;
  revocations: Revocations;
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
    const actor = origin ? 'person' : 'operator';
    const cause = origin ? 'person_disconnected' : 'operator_revoked';
    const ended = await connections.end(accountId, clientId, async (tx, grantIds) => {
      await revocations.recordAll({ grantIds, accountId, clientId, cause }, tx);
      await activity.record({ action: 'disconnected', actor, accountId, details, origin }, tx);
    });
    // Those that were issued meanwhile; from here on none is.
    await revokeAll(ended.filter((grantId) => !known.includes(grantId)));
    return ended.length;
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
