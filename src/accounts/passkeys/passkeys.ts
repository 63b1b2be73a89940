/** Passkeys: the public keys of users' authenticators, and the last known state of each. */
import type { Clock } from '../../base/clock.ts';
import { randomId, sha256 } from '../../base/random-id.ts';
import { lockedTransactionOf, transactionOf } from '../../storage/account-turns.ts';
import { type CleaningJob, expiryJob } from '../../storage/cleaning.ts';
import type { Database, InTransaction, Queries } from '../../storage/queries.ts';
import { type Account, type AccountRow, accountFrom, SELECT_ACCOUNTS } from '../account.ts';
import type { Activity, Origin } from '../activity/activity.ts';
import type { MethodsOfKind } from '../sign-in-methods.ts';
import {
  detailsOf,
  isPasskeyId,
  type KeyRow,
  keyFrom,
  type MadePasskey,
  PASSKEY_COLUMNS,
  type Passkey,
  type PasskeyKey,
  type PasskeyRow,
  passkeyFrom,
} from './passkey.ts';

/** A challenge that a browser has answered; it is accepted only once. */
interface Challenge {
  readonly text: string;
  /** How long to store the challenge as used: until its own expiry prevents another answer. */
  readonly seconds: number;
}

export interface Passkeys {
  /** Returns the passkeys of an account, oldest first. */
  of(accountId: string): Promise<Passkey[]>;
  has(accountId: string): Promise<boolean>;
  /** Returns the passkey with this id, of any account. */
  find(id: string): Promise<Passkey | undefined>;
  /**
   * Returns the account's user handle (WebAuthn §4), under which authenticators store its passkeys:
   * 64 characters of `[A-Za-z0-9_-]`. The handle is random, so that it does not reveal the user, and
   * never changes, so that a new passkey on the same authenticator replaces the former one.
   */
  handleOf(accountId: string): Promise<string>;
  findKey(credentialId: string): Promise<PasskeyKey | undefined>;
  /**
   * Stores a new passkey and records that.
   *
   * @returns the passkey, or why it was not stored: `over` if the challenge was answered before,
   *   `full` if the account has `MAX_PASSKEYS`, `known` if an account already has this passkey.
   */
  add(passkey: NewPasskey): Promise<Passkey | 'over' | 'full' | 'known'>;
  /**
   * Records a verified signature: one atomic step for the challenge and the counter.
   *
   * @returns the current account, or why it is refused: `over` if the challenge was answered
   *   before, `gone` if the passkey has just been removed, `copied` if the counter did not grow:
   *   another authenticator seems to have the same key, which is recorded.
   */
  use(passkey: Passkey, seen: SeenPasskey): Promise<Account | 'over' | 'gone' | 'copied'>;
  /** @returns true if the account has such a passkey. */
  rename(accountId: string, id: string, name: string): Promise<boolean>;
  /**
   * Removes a passkey, even if it is the last sign-in method (sign-in-methods.ts lets users not).
   *
   * @returns true if there was such a passkey.
   */
  remove(accountId: string, id: string, inTransaction: InTransaction): Promise<boolean>;
  /**
   * Returns the passkeys as sign-in methods (sign-in-methods.ts).
   *
   * @param isOn true if the settings allow sign-ins with passkeys.
   */
  listMethods(isOn: boolean): MethodsOfKind;
  readonly removeExpired: CleaningJob;
}

interface NewPasskey extends MadePasskey {
  readonly accountId: string;
  readonly name: string;
  readonly challenge: Challenge;
  readonly origin: Origin;
}

interface SeenPasskey {
  readonly counter: number;
  readonly isSynced: boolean;
  readonly challenge: Challenge;
  readonly origin: Origin;
}

/** Maximum number of passkeys per account. */
export const MAX_PASSKEYS = 20;

export function createPasskeys(parts: {
  readonly database: Database;
  readonly clock: Clock;
  readonly activity: Pick<Activity, 'record'>;
}): Passkeys {
  const { database, clock, activity } = parts;

  async function of(accountId: string, queries: Queries = database): Promise<Passkey[]> {
    const rows = await queries.query<PasskeyRow>(
      `SELECT ${PASSKEY_COLUMNS} FROM passkeys WHERE account_id = $1 ORDER BY created_at, id`,
      [accountId],
    );
    return rows.map(passkeyFrom);
  }

  /** @returns false if the challenge was answered before. Parallel answers wait for the first. */
  async function useUp(tx: Queries, { text, seconds }: Challenge): Promise<boolean> {
    const isFirst = await tx.query(
      `INSERT INTO used_challenges (challenge_hash, expires_at) VALUES ($1, $2)
        ON CONFLICT DO NOTHING RETURNING 1`,
      [sha256(text), new Date(clock() + seconds * 1000)],
    );
    return isFirst.length > 0;
  }

  /** @returns the name of the passkey. */
  async function removeIn(tx: Queries, accountId: string, id: string): Promise<string | undefined> {
    const [gone] = await tx.query<{ name: string }>(
      'DELETE FROM passkeys WHERE account_id = $1 AND id = $2 RETURNING name',
      [accountId, id],
    );
    return gone?.name;
  }

  return {
    of,

    has: async (accountId) => (await of(accountId)).length > 0,

    async handleOf(accountId) {
      // Assign the handle to itself, so that RETURNING also returns an existing one.
      const [row] = await database.query<{ handle: string }>(
        `INSERT INTO passkey_users (account_id, handle) VALUES ($1, $2)
          ON CONFLICT (account_id) DO UPDATE SET handle = passkey_users.handle RETURNING handle`,
        [accountId, randomId('', 64)],
      );
      if (row === undefined) throw new Error('INSERT … RETURNING answered no row');
      return row.handle;
    },

    async find(id) {
      const [row] = isPasskeyId(id)
        ? await database.query<PasskeyRow>(`SELECT ${PASSKEY_COLUMNS} FROM passkeys WHERE id = $1`, [id])
        : [];
      return row && passkeyFrom(row);
    },

    async findKey(credentialId) {
      const [row] = await database.query<KeyRow>(
        `SELECT ${PASSKEY_COLUMNS}, public_key, may_sync, handle
          FROM passkeys JOIN passkey_users USING (account_id) WHERE credential_id = $1`,
        [credentialId],
      );
      return row && keyFrom(row);
    },

    add: ({ accountId, name, challenge, origin, ...made }) =>
      // Lock the account, so that parallel additions see the previously added passkey.
      lockedTransactionOf(database, accountId, async (tx) => {
        if ((await of(accountId, tx)).length >= MAX_PASSKEYS) return 'full';
        if (!(await useUp(tx, challenge))) return 'over';
        const [row] = await tx.query<PasskeyRow>(
          `INSERT INTO passkeys (id, credential_id, account_id, public_key, counter, transports,
              may_sync, is_synced, aaguid, name, created_at)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
            ON CONFLICT DO NOTHING RETURNING ${PASSKEY_COLUMNS}`,
          [
            randomId('pk_', 16),
            made.credentialId,
            accountId,
            made.publicKey,
            made.counter,
            made.transports,
            made.maySync,
            made.isSynced,
            made.aaguid,
            name,
            new Date(clock()),
          ],
        );
        if (!row) return 'known';
        const passkey = passkeyFrom(row);
        const details = detailsOf(passkey);
        await activity.record({ action: 'passkey_added', actor: 'person', accountId, details, origin }, tx);
        return passkey;
      }),

    use: (passkey, { counter, isSynced, challenge, origin }) =>
      transactionOf(database, passkey.accountId, async (tx) => {
        if (!(await useUp(tx, challenge))) return 'over';
        // Web Authentication §6.1.1: a counter, if there is one, grows with each signature.
        const grown = await tx.query(
          `UPDATE passkeys SET counter = $2, is_synced = $3, last_used_at = $4
            WHERE id = $1 AND (counter < $2 OR (counter = 0 AND $2 = 0)) RETURNING 1`,
          [passkey.id, counter, isSynced, new Date(clock())],
        );
        const { accountId } = passkey;
        if (grown.length > 0) {
          const [row] = await tx.query<AccountRow>(`${SELECT_ACCOUNTS} WHERE id = $1`, [accountId]);
          return row ? accountFrom(row) : 'gone';
        }
        const kept = await tx.query('SELECT FROM passkeys WHERE id = $1', [passkey.id]);
        if (kept.length === 0) return 'gone';
        const details = { reason: 'copied', ...detailsOf(passkey) };
        await activity.record({ action: 'passkey_refused', actor: 'person', accountId, details, origin }, tx);
        return 'copied';
      }),

    async rename(accountId, id, name) {
      if (!isPasskeyId(id)) return false;
      const renamed = await database.query(
        'UPDATE passkeys SET name = $3 WHERE account_id = $1 AND id = $2 RETURNING 1',
        [accountId, id, name],
      );
      return renamed.length > 0;
    },

    remove: (accountId, id, inTransaction) =>
      transactionOf(database, accountId, async (tx) => {
        const name = await removeIn(tx, accountId, id);
        if (name !== undefined) await inTransaction(tx);
        return name !== undefined;
      }),

    listMethods: (isOn) => ({
      of: async (accountId, tx = database) =>
        (await of(accountId, tx)).map(({ id, name, createdAt, lastUsedAt }) => ({
          id,
          lastUsedAt,
          kind: 'passkey',
          label: name,
          addedAt: createdAt,
          isDisabled: !isOn,
          isStrong: isOn,
        })),

      async remove(accountId, id, tx) {
        const name = (await removeIn(tx, accountId, id)) ?? '';
        return { action: 'passkey_removed', details: detailsOf({ id, name }) };
      },
    }),

    removeExpired: expiryJob(parts, [{ table: 'used_challenges', column: 'expires_at' }]),
  };
}
