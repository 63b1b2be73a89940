/** The clients of one person, as their owner looks at them: never anybody else's. */
import { isClientId } from '../random-id.ts';
import type { Queries } from '../storage/queries.ts';
import type { Client } from './client.ts';
import { type ClientRow, clientFrom, SELECT_CLIENTS } from './client-row.ts';

export interface OwnedClient extends Client {
  /** How many people have it connected now. */
  readonly connectedPeople: number;
}

export interface OwnedClients {
  /** The clients of a person as they are now, oldest first. */
  listByOwner(accountId: string): Promise<OwnedClient[]>;
  /** A client of this person as it is now; undefined also where it is somebody else's. */
  findByOwner(accountId: string, id: string): Promise<OwnedClient | undefined>;
}

/** Asks the database each time: its answers show uses, which nobody is notified of. */
export function createOwnedClients(database: Queries): OwnedClients {
  async function select(where: string, values: readonly string[]): Promise<OwnedClient[]> {
    const rows = await database.query<ClientRow & { connected_people: number }>(
      `SELECT owned.*,
          (SELECT count(*)::integer FROM connections
            WHERE client_id = owned.id AND ended_at IS NULL) AS connected_people
        FROM (${SELECT_CLIENTS} WHERE ${where}) owned ORDER BY owned.created_at, owned.id`,
      values,
    );
    return rows.map((row) => ({ ...clientFrom(row), connectedPeople: row.connected_people }));
  }

  return {
    listByOwner: (accountId) => select('c.owner_account_id = $1', [accountId]),

    async findByOwner(accountId, id) {
      if (!isClientId(id)) return undefined;
      const [client] = await select('c.owner_account_id = $1 AND c.id = $2', [accountId, id]);
      return client;
    },
  };
}
