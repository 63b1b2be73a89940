/** Creates the registries of stored data, which do not depend on the settings, for the service and for commands. */
import type { Logger } from 'pino';
import { createAccess } from '../accounts/access/access.ts';
import { createPeople } from '../accounts/access/people.ts';
import { createActivity } from '../accounts/activity/activity.ts';
import { createAuditTrail } from '../accounts/activity/audit-trail.ts';
import { createApiKeys } from '../accounts/api-keys/api-keys.ts';
import { createIdentities } from '../accounts/identities/identities.ts';
import { createTakenNames } from '../accounts/organizations/taken-names.ts';
import { createPasskeys } from '../accounts/passkeys/passkeys.ts';
import { createPasswordLinks } from '../accounts/password-links/password-links.ts';
import { createSessionList } from '../accounts/session-list.ts';
import { createClientStandings } from '../authorizations/client-standing.ts';
import { createConnections } from '../authorizations/connections.ts';
import { createClientRemoval } from '../authorizations/endings.ts';
import { withdrawApprovals } from '../authorizations/organization-endings.ts';
import { createRevocations } from '../authorizations/revocations.ts';
import type { CreateAttemptLimit } from '../base/attempt-limits.ts';
import type { Clock } from '../base/clock.ts';
import type { OperatedBy } from '../base/operated-by.ts';
import { createAccounts } from '../changes/accounts.ts';
import { createChanges } from '../changes/engine.ts';
import { createClientRegistry } from '../clients/client-registry.ts';
import { createClientRequests, type MailedOwner } from '../clients/client-requests.ts';
import { writeUses } from '../clients/client-row.ts';
import type { Settings } from '../config/settings.ts';
import type { ChangeFeed } from '../storage/change-feed.ts';
import { createLastUsed } from '../storage/last-used.ts';
import type { Database } from '../storage/queries.ts';
import type { TokenStore } from '../storage/token-store.ts';
import type { OwnText } from '../texts/texts.ts';

const UNWRITTEN = 'refused sign-ins of the last minute could not be recorded';

export type CommonRegistries = ReturnType<typeof createCommonRegistries>;

/** The objects from which the parts of a node are created. A reload replaces only `settings`. */
export interface NodeParts {
  readonly settings: Settings;
  readonly clock: Clock;
  readonly log: Logger;
  readonly database: Database;
  readonly store: TokenStore;
  readonly registries: Omit<CommonRegistries, 'close'>;
  readonly createAttemptLimit: CreateAttemptLimit;
}

/** Creates the registries, but sends no query. The caller must close the registries. */
export function createCommonRegistries(parts: {
  readonly database: Database;
  readonly changes: ChangeFeed;
  readonly clock: Clock;
  readonly log: Pick<Logger, 'warn'>;
  readonly issuer: string;
  /** Returns the name of the brand, which a reload can change. */
  readonly brandName: () => OwnText;
  /** Called with the owners of clients that have new problems (see `createClientRequests`). */
  readonly onNewProblems?: (owners: readonly MailedOwner[]) => void;
  /** The operator command that the activity log names for changes. */
  readonly by?: OperatedBy;
  readonly timeoutFactor?: number | undefined;
  readonly databaseConnections?: number | undefined;
  /** Maximum number of cached users, and of cached API keys. */
  readonly maxCached?: number | undefined;
}) {
  const { database, changes, clock, log } = parts;
  const people = createPeople(parts);
  const engine = createChanges({ ...parts, connections: parts.databaseConnections });
  const accounts = createAccounts({ ...parts, people, engine });
  const access = createAccess({ ...parts, people });
  const checks = {
    isNameTaken: createTakenNames(parts.issuer, parts.brandName).isTaken,
    followClientBlocks: access.clientBlocks.follow,
    withdrawApprovals,
    forgetClientBlocks: access.clientBlocks.forget,
  };
  const clients = createClientRegistry({ database, changes, clock, checks });
  const connections = createConnections({ ...parts, people });
  const activity = createActivity(parts);
  const apiKeys = createApiKeys({ ...parts, people, activity });
  const clientRequests = createClientRequests({ ...parts, clients });
  const lastUsed = createLastUsed({
    clock,
    log,
    writers: {
      client: writeUses(database, 'clients'),
      client_secret: writeUses(database, 'client_secrets'),
      connection: connections.writeUses,
      api_key: apiKeys.writeUses,
    },
  });
  return {
    engine,
    people,
    clients,
    removeClient: createClientRemoval({ clients, connections, activity }),
    accounts,
    access,
    sessionList: createSessionList(parts),
    connections,
    activity,
    auditTrail: createAuditTrail(parts),
    apiKeys,
    identities: createIdentities(parts),
    passkeys: createPasskeys({ ...parts, activity }),
    passwordLinks: createPasswordLinks({ ...parts, accounts, activity }),
    revocations: createRevocations({ ...parts, activity }),
    clientStandings: createClientStandings(parts),
    clientRequests,
    lastUsed,
    /** Writes queued data and ends the background work, in reverse order of creation. */
    async close(): Promise<void> {
      await activity.writeRefused(true).catch((err: unknown) => log.warn({ err }, UNWRITTEN));
      await lastUsed.close();
      await clientRequests.close();
    },
  };
}
