/** Changes memberships on a database, as the operator command does. Writes nothing to the audit. */
import type { Right, Role, Subject } from '../../src/accounts/access/reach.ts';
import { createChanges } from '../../src/changes/engine.ts';
import { createMemberships as createRecorded } from '../../src/changes/memberships.ts';
import type { Database } from '../../src/storage/queries.ts';
import { TIMEOUT_FACTOR } from './timeout-factor.ts';

export type Memberships = ReturnType<typeof createMemberships>;

export function createMemberships({ database }: { readonly database: Database }) {
  const engine = createChanges({ database, timeoutFactor: TIMEOUT_FACTOR });
  const memberships = createRecorded({ database, engine, activity: { recordAll: async () => {} } });
  return {
    ...memberships,
    setRole: (subject: Subject, id: string, role: Role) => memberships.set(subject, { organization: { id, role } }),
    setRights: (subject: Subject, id: string, rights: readonly Right[]) =>
      memberships.set(subject, { warehouse: { id, rights } }),
  };
}
