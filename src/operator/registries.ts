/** What commands work on: the registries of the service, over a database of its own or a shared one. */
import { type Access, createAccess } from '../accounts/access.ts';
import { type AccountRegistry, createAccountRegistry } from '../accounts/account-registry.ts';
import { createActivity } from '../accounts/activity.ts';
import { createSendMail } from '../accounts/mail.ts';
import { createMemberships, type Memberships } from '../accounts/memberships.ts';
import { createOrganizations, type Organizations } from '../accounts/organizations.ts';
import { createPasswordLinks } from '../accounts/password-links.ts';
import { type ClientRegistry, createClientRegistry } from '../clients/client-registry.ts';
import { systemClock } from '../clock.ts';
import { loadSettingsWithoutSecrets } from '../config/load.ts';
import { Refusal } from '../refusal.ts';
import { silentChangeFeed } from '../storage/change-feed.ts';
import { type OpenDatabase, openDatabase } from '../storage/database.ts';
import { migrate, pendingMigrations } from '../storage/migrate.ts';
import { openTokenStore } from '../storage/open-token-store.ts';
import type { TokenStore } from '../storage/token-store.ts';
import { type RecordChange, recordsIn } from './change-records.ts';
import { createInvitations, type Invitations } from './invitations.ts';

export interface Registries {
  readonly accounts: AccountRegistry;
  readonly organizations: Organizations;
  readonly memberships: Memberships;
  readonly access: Access;
  readonly clients: ClientRegistry;
  readonly invitations: Invitations;
  /** Opened with the first call: most commands do without it. */
  readonly tokenStore: () => Promise<TokenStore>;
  /** For every command that changes who may do what. */
  readonly recordChange: RecordChange;
}

/**
 * Opens the database of the settings for as long as `work` takes. An embedded database that a
 * running service keeps is reached through that service.
 *
 * @throws ConfigurationProblems, StorageUnavailable, or Refusal `migration_pending`
 */
export async function withRegistries<Result>(
  work: (registries: Registries) => Promise<Result>,
): Promise<Result> {
  const { storage, issuer, mail } = loadSettingsWithoutSecrets();
  const database = await openDatabase(storage);
  let store: Promise<TokenStore> | undefined;
  try {
    await requireSchema(database, storage.autoMigrate);
    // A command asks once and ends: there is nothing to remember, so nothing to be told.
    const parts = { database, changes: silentChangeFeed, clock: systemClock };
    const accounts = createAccountRegistry(parts);
    const activity = createActivity(parts);
    const links = createPasswordLinks({ ...parts, accounts, activity });
    return await work({
      accounts,
      organizations: createOrganizations(parts),
      memberships: createMemberships(parts),
      access: createAccess(parts),
      clients: createClientRegistry(parts),
      invitations: createInvitations({ issuer, links, sendMail: mail && createSendMail(mail) }),
      tokenStore: () => {
        store ??= openTokenStore({ ...storage, database, clock: systemClock });
        return store;
      },
      recordChange: recordsIn(activity),
    });
  } finally {
    await (await store?.catch(() => undefined))?.close();
    await database.close();
  }
}

async function requireSchema(database: OpenDatabase, mayMigrate: boolean): Promise<void> {
  const pending = await pendingMigrations(database);
  if (pending.length === 0) return;
  if (mayMigrate) {
    await migrate(database);
    return;
  }
  throw new Refusal(
    'migration_pending',
    `The database lacks ${pending.join(', ')}, and storage.auto_migrate is false.`,
    'Set it to true for one start, or use the version that the database was made for.',
  );
}
