/** Changes memberships on a database, as the operator command does. Writes nothing to the audit. */
import { createChanges } from '../../src/changes/engine.ts';
import { createMemberships as createRecorded, type Memberships } from '../../src/changes/memberships.ts';
import type { Database } from '../../src/storage/queries.ts';
import { TIMEOUT_FACTOR } from './timeout-factor.ts';

export const createMemberships = ({ database }: { readonly database: Database }): Memberships =>
  createRecorded({
    database,
    engine: createChanges({ database, timeoutFactor: TIMEOUT_FACTOR }),
    activity: { recordAll: async () => {} },
  });
