/** Opens the registries that one command works on. */
import type { NewActivity } from '../accounts/activity/activity.ts';
import type { Action } from '../accounts/activity/activity-words.ts';
import { createAudit } from '../accounts/activity/audit.ts';
import { createDisconnect, createDisconnectSome, createEndings } from '../authorizations/endings.ts';
import { createMachineTokens } from '../authorizations/machine-tokens.ts';
import { createOrganizationEndings } from '../authorizations/organization-endings.ts';
import { createOrganizationReach } from '../authorizations/organization-reach.ts';
import { systemClock } from '../base/clock.ts';
import type { OperatedBy } from '../base/operated-by.ts';
import { Refusal } from '../base/refusal.ts';
import { createImporter } from '../changes/import.ts';
import { createMemberships } from '../changes/memberships.ts';
import { createOrganizations } from '../changes/organizations.ts';
import type { Client } from '../clients/client.ts';
import type { loadForCommand } from '../config/load.ts';
import type { SettingsWithoutSecrets } from '../config/settings.ts';
import { createCommonRegistries } from '../service/common-registries.ts';
import { requireEmbeddedDatabase, requireTables } from '../service/deployment.ts';
import { silentChangeFeed } from '../storage/change-feed.ts';
import { type OpenDatabase, openDatabase } from '../storage/database.ts';
import { requireSchema } from '../storage/migrate.ts';
import { listNodes } from '../storage/nodes.ts';
import { openTokenStore } from '../storage/open-token-store.ts';
import type { Queries } from '../storage/queries.ts';
import type { TokenStore } from '../storage/token-store.ts';

type ChangeRecord = (tx: Queries) => Promise<void>;

export type Registries = ReturnType<typeof createRegistries>;

/** The functions of a command that `withRegistries` calls while it opens the database. */
export interface Opening {
  /** Loads the settings. If the settings file is refused, prints on standard error what is used instead. */
  readonly load: () => ReturnType<typeof loadForCommand>;
  /** Returns who runs the command and why, for the audit log. */
  readonly by: () => OperatedBy;
  /** If the command changes something, prints on standard error which deployment it changes. `run` calls this. */
  readonly announce: (settings: SettingsWithoutSecrets) => void;
  /** Prints a sentence on standard error. */
  readonly warn: (sentence: string) => void;
  /** Prints on standard error which database session a migration waits for. */
  readonly onWait: (session: string) => void;
}

/** Multiplies the service's database timeouts. A command may wait longer, because no browser waits for it. */
export const TIMEOUT_FACTOR = 10;
/** The database ends a transaction idle for this time, so that a command stopped by Ctrl-Z does not keep its locks. */
const MAX_IDLE_MS = 2_000;

const newerSchema = (names: readonly string[]): string =>
  `The database has the schema of a later version (${names.at(-1)}), which this command does not know.`;

/**
 * Opens the registries while `work` runs. An embedded database that a running service has open is used through that
 * service.
 *
 * @param readsOnly true for a command that changes nothing and so must not migrate the schema
 * @throws NoDeployment, StorageUnavailable, or Refusal `migrations_pending`
 */
export async function withRegistries<Result>(
  { load, by, announce, warn, onWait }: Opening,
  readsOnly: boolean,
  work: (registries: Registries) => Promise<Result>,
): Promise<Result> {
  const loaded = load();
  const { settings } = loaded;
  const { storage } = settings;
  announce(settings);
  requireEmbeddedDatabase(storage);
  // Use long timeouts, because one statement may change very many rows.
  const database = await openDatabase({ ...storage, timeoutFactor: TIMEOUT_FACTOR, maxIdleMs: MAX_IDLE_MS });
  await using opened = new AsyncDisposableStack();
  opened.defer(() => database.close());
  await requireTables(database, storage);
  const newer = await requireSchema(database, { autoMigrate: storage.autoMigrate && !readsOnly }, onWait);
  if (newer.length > 0) warn(newerSchema(newer));
  return await work(createRegistries(loaded, by(), database, opened));
}

function createRegistries(
  { settings, keys, knowsRedis }: ReturnType<typeof loadForCommand>,
  by: OperatedBy,
  database: OpenDatabase,
  opened: AsyncDisposableStack,
) {
  // A command caches nothing, so it needs no change feed. It prints its failures, so it needs no log.
  const parts = { database, changes: silentChangeFeed, clock: systemClock };
  const registries = createCommonRegistries({
    ...parts,
    log: { warn: () => {} },
    issuer: settings.issuer,
    brandName: () => settings.brand.name,
    timeoutFactor: TIMEOUT_FACTOR,
    by,
  });
  opened.defer(() => registries.close());
  const { engine, access, activity, connections, revocations } = registries;
  const asksFirst = settings.organizations.clients === 'ask';
  let store: Promise<TokenStore> | undefined;
  /** Opens the token store at the first call, because most commands do not need it. @throws Refusal `redis_unknown` */
  const tokenStore = (): Promise<TokenStore> => {
    store ??= openTokens();
    return store;
  };
  async function openTokens(): Promise<TokenStore> {
    if (settings.storage.redisUrl === undefined && (await mayUseRedis(database, !knowsRedis))) throw redisUnknown();
    const { store } = await openTokenStore({ ...settings.storage, database, clock: systemClock });
    return opened.adopt(store, () => store.close());
  }
  return {
    settings,
    /** Reads the keys only when called, because most commands need no keys. */
    keys,
    database,
    ...registries,
    organizations: createOrganizations({ ...parts, engine, asksFirst }),
    organizationEndings: createOrganizationEndings({ ...parts, engine, access, activity }),
    organizationReach: createOrganizationReach(parts),
    memberships: createMemberships({ database, engine, activity }),
    importer: createImporter({ ...parts, engine, activity, asksFirst }),
    disconnect: createDisconnect(connections, activity),
    disconnectSome: createDisconnectSome(connections, activity),
    audit: createAudit(parts),
    tokenStore,
    endings: async () => createEndings({ store: await tokenStore(), revocations }),
    machineTokens: async () => createMachineTokens(await tokenStore()),
    /** @param about the account in whose log the record appears, and the ids and names of what was changed */
    recordChange:
      (action: Action, about: Pick<NewActivity, 'accountId' | 'details'>): ChangeRecord =>
      (tx) =>
        activity.record({ ...about, action, actor: 'operator' }, tx),
  };
}

/** True if a node active in the last hour has its tokens in Redis. @param unknown the result if none was active */
async function mayUseRedis(database: OpenDatabase, unknown: boolean): Promise<boolean> {
  const nodes = await listNodes(database);
  return nodes.length === 0 ? unknown : nodes.some(({ runsWith }) => runsWith.redis !== 'none');
}

const redisUnknown = (): Refusal =>
  new Refusal(
    'redis_unknown',
    'The service may store its tokens in a Redis whose URL this command does not have, so the command cannot find them.',
    'Set REDIS_URL to that of the service; if it has none, correct the settings file and start a node (an hour after the last node with a Redis). ' +
      '`revoke --account` and `revoke --client` work without it.',
  );

/** The audit record appears in the log of the client's owner, if the client has an owner. */
export const clientRecord = (
  { recordChange }: Pick<Registries, 'recordChange'>,
  action: Action,
  { id, name, ownerAccountId }: Pick<Client, 'id' | 'name'> & { ownerAccountId?: string | undefined },
  details: NewActivity['details'] = {},
): ChangeRecord =>
  recordChange(action, { accountId: ownerAccountId, details: { client_id: id, client_name: name, ...details } });
