/** What a node writes into its row, for tests that start no service. */
import type { NodeDescription } from '../../src/storage/nodes.ts';

export const READY_NODE: NodeDescription = {
  state: 'ready',
  runsWith: {
    version: '1.0.0',
    settings: {},
    databaseConnections: 10,
    reload: { request: 0 },
  },
};
