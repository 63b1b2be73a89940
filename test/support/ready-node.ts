/** What a node writes into its row, for tests that start no service, and rows of nodes that do not run. */
import type { NodeDescription } from '../../src/storage/nodes.ts';
import type { Queries } from '../../src/storage/queries.ts';

export const READY_NODE: NodeDescription = {
  state: 'ready',
  runsWith: {
    version: '1.0.0',
    settings: {},
    databaseConnections: 10,
    reload: { request: 0 },
  },
};

/** Adds a node like one whose name ends so, as if its process had been frozen since a heartbeat so long ago. */
export const addFrozenNode = (database: Queries, like: string, node: string, seconds: number) =>
  database.query(
    `INSERT INTO node_keys (node, seen_at, noted_at, cookie_keys, token_keys, state, ready_since, runs_with)
      SELECT $2, seen_at, clock_timestamp() - $3 * interval '1 second', cookie_keys, token_keys, state, ready_since,
        runs_with || '{"reload": {"request": 0}}' FROM node_keys WHERE node LIKE '%' || $1`,
    [like, node, seconds],
  );
