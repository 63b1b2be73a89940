/** The registries that commands work on, opened for one command. */
import type { NewActivity } from '../accounts/activity/activity.ts';
import type { Action } from '../accounts/activity/activity-words.ts';
import { createAudit } from '../accounts/activity/audit.ts';
import { createDisconnect, createDisconnectSome, createEndings } from '../authorizations/endings.ts';
import { createMachineTokens } from '../authorizations/machine-tokens.ts';
import { createOrganizationEndings } from '../authorizations/organization-endings.ts';
import { createOrganizationEnds } from '../authorizations/organization-ends.ts';
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

/** The functions of a command that are called while its registries are opened. */
export interface Opening {
  /** Loads the settings, or reports on standard error what is used instead of a refused file. */
  readonly load: () => ReturnType<typeof loadForCommand>;
  /** Who runs the command and why, for the audit log. */
  readonly by: () => OperatedBy;
  /**
   * If the command changes something, prints on standard error on which deployment it acts. `run`
   * calls `announce` itself.
   */
  readonly announce: (settings: SettingsWithoutSecrets) => void;
  /** Prints a sentence on standard error, also with `--json`. */
  readonly warn: (sentence: string) => void;
  /** Reports on standard error for which session a migration waits. */
  readonly onWait: (session: string) => void;
}

/** Multiplies the service's database timeouts: no page waits for a command. */
export const TIMEOUT_FACTOR = 10;
/** The database ends an idle transaction after this time: a command stopped with Ctrl-Z would keep its locks. */
const MAX_IDLE_MS = 2_000;

const newerSchema = (names: readonly string[]): string =>
  `The database has the schema of a later version (${names.at(-1)}), and this command does not know what it adds.`;

/**
 * Opens the database of the settings while `work` runs. If a running service has opened an embedded database, it is
 * reached through that service.
 *
 * @param readsOnly true for a command that changes nothing, and so must not migrate
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
  // Use long timeouts: one statement may change very many rows.
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
  // A command ends after its work, so it caches nothing and needs no change feed. It awaits its
  // records and reports failures itself, so it needs no log.
  const parts = { database, changes: silentChangeFeed, clock: systemClock };
  const registries = createCommonRegistries({
    ...parts,
    log: { warn: () => {}, debug: () => {} },
    issuer: settings.issuer,
    brandName: () => settings.brand.name,
    timeoutFactor: TIMEOUT_FACTOR,
    by,
  });
  opened.defer(() => registries.close());
  const { engine, access, activity, connections, revocations } = registries;
  const asksFirst = settings.organizations.clients === 'ask';
  let store: Promise<TokenStore> | undefined;
  /** Opens the token store at the first call: most commands do not need it. @throws Refusal `redis_unknown` */
  const tokenStore = (): Promise<TokenStore> => {
    store ??= openTokens();
    return store;
  };
  async function openTokens(): Promise<TokenStore> {
    if (!knowsRedis && !(await usesNoRedis(database))) throw redisUnknown();
    const { store } = await openTokenStore({ ...settings.storage, database, clock: systemClock });
    return opened.adopt(store, () => store.close());
  }
  const ends = createOrganizationEnds({ ...parts, engine, access });
  return {
    settings,
    /** Reads the keys at each call, like `findKeys`: most commands need no keys. */
    keys,
    database,
    ...registries,
    organizations: createOrganizations({ ...parts, engine, asksFirst }),
    organizationEndings: createOrganizationEndings({ activity, ends }),
    organizationReach: createOrganizationReach(parts),
    memberships: createMemberships({ database, engine, activity }),
    importer: createImporter({ ...parts, engine, activity, asksFirst }),
    disconnect: createDisconnect(connections, activity),
    disconnectSome: createDisconnectSome(connections, activity),
    audit: createAudit(parts),
    tokenStore,
    endings: async () => createEndings({ store: await tokenStore(), revocations }),
    machineTokens: async () => createMachineTokens(await tokenStore()),
    /**
     * Creates the audit record of a change, to be written in the transaction of that change.
     *
     * @param about in whose log the record appears, and the ids and names of the changed things
     */
    recordChange:
      (action: Action, about: Pick<NewActivity, 'accountId' | 'details'>): ChangeRecord =>
      (tx) =>
        activity.record({ ...about, action, actor: 'operator' }, tx),
  };
}

/** Returns true if the nodes of the last hour report that their tokens are in the database. */
async function usesNoRedis(database: OpenDatabase): Promise<boolean> {
  const nodes = await listNodes(database);
  return nodes.length > 0 && nodes.every(({ runsWith }) => runsWith.redis === 'none');
}

const redisUnknown = (): Refusal =>
  new Refusal(
    'redis_unknown',
    'The settings file, which may name a Redis, is refused: this command does not know where the tokens are.',
    'Set REDIS_URL to that of the service; if it has none, correct the settings file and start a node. ' +
      '`revoke --account` and `revoke --client` work without it.',
  );

/** Creates the audit record of a change of a client, for the log of the client's owner, if any. */
export const clientRecord = (
  { recordChange }: Pick<Registries, 'recordChange'>,
  action: Action,
  { id, name, ownerAccountId }: Pick<Client, 'id' | 'name'> & { ownerAccountId?: string | undefined },
  details: NewActivity['details'] = {},
): ChangeRecord =>
  recordChange(action, { accountId: ownerAccountId, details: { client_id: id, client_name: name, ...details } });
