/** Which organizations do not let a client in, whoever approved it. */
import type { Clock } from '../../clock.ts';
import type { ChangeFeed } from '../../storage/change-feed.ts';
import { createMemory } from '../../storage/memory.ts';
import type { Queries } from '../../storage/queries.ts';

export interface Bars {
  /** The ids of the organizations that do not let this client in. */
  of(clientId: string): Promise<ReadonlySet<string>>;
  /** Those of these organizations, by client; a client that none of them bars is left out. */
  within(organizationIds: readonly string[]): Promise<ReadonlyMap<string, readonly Bar[]>>;
  /** For who changed them, and answers sooner than the database tells. */
  forget(clientId: string): void;
}

export interface Bar {
  readonly clientId: string;
  readonly organizationId: string;
  readonly at: Date;
}

export function createBars(parts: {
  readonly database: Queries;
  readonly changes: ChangeFeed;
  readonly clock: Clock;
}): Bars {
  const { database } = parts;
  const memory = createMemory<ReadonlySet<string>>({ ...parts, topics: ['bars'] });
  return {
    of: (clientId) =>
      memory.find(clientId, async () => {
        const rows = await database.query<{ id: string }>(
          'SELECT organization_id AS id FROM barred_clients WHERE client_id = $1',
          [clientId],
        );
        return new Set(rows.map(({ id }) => id));
      }),

    async within(organizationIds) {
      const rows = await database.query<Bar>(
        `SELECT client_id AS "clientId", organization_id AS "organizationId", barred_at AS at
          FROM barred_clients WHERE organization_id = ANY($1)`,
        [organizationIds],
      );
      return Map.groupBy(rows, ({ clientId }) => clientId);
    },

    forget: (clientId) => memory.forget('bars', clientId),
  };
}
