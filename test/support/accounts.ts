/** The registries of accounts and memberships with an engine of their own, for tests without a service. */
import type { Right, Role, Subject } from '../../src/accounts/access/reach.ts';
import { createAccounts as createOnEngine } from '../../src/changes/accounts.ts';
import { createChanges } from '../../src/changes/engine.ts';
import { createMemberships as createRecorded } from '../../src/changes/memberships.ts';
import type { Database } from '../../src/storage/queries.ts';
import { TIMEOUT_FACTOR } from './timeout-factor.ts';

type Parts = Omit<Parameters<typeof createOnEngine>[0], 'engine'>;

export const createAccounts = (parts: Parts) =>
  createOnEngine({ ...parts, engine: createChanges({ ...parts, timeoutFactor: TIMEOUT_FACTOR }) });

export type Memberships = ReturnType<typeof createMemberships>;

/** Changes memberships on a database, as the operator command does. Writes nothing to the audit. */
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
