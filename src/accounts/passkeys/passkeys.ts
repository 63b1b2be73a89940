/** Passkeys: the public keys of users' authenticators, and the last known state of each. */
import type { Clock } from '../../base/clock.ts';
import { randomId, sha256 } from '../../base/random-id.ts';
import { lockedTransactionOf, transactionOf } from '../../storage/account-turns.ts';
import { expiryJob } from '../../storage/cleaning.ts';
import type { Database, InTransaction, Queries } from '../../storage/queries.ts';
import { type Account, readAccount } from '../account.ts';
import type { Activity, Origin } from '../activity/activity.ts';
import { endSessionsIn, type MethodsOfKind, type RequireMayAdd } from '../sign-in-methods.ts';
import { detailsOf, isPasskeyId, type MadePasskey, PASSKEY_COLUMNS, type Passkey, type PasskeyKey } from './passkey.ts';

interface Challenge {
  readonly text: string;
  /** For how many seconds the service remembers that the challenge was answered: until the challenge has expired. */
  readonly seconds: number;
}

export type Passkeys = ReturnType<typeof createPasskeys>;

interface NewPasskey extends MadePasskey {
  readonly accountId: string;
  readonly name: string;
  readonly challenge: Challenge;
  readonly origin: Origin;
  readonly requireMayAdd: RequireMayAdd;
}

export const MAX_PASSKEYS = 20;

export function createPasskeys(parts: {
  readonly database: Database;
  readonly clock: Clock;
  readonly activity: Pick<Activity, 'record'>;
}) {
  const { database, clock, activity } = parts;

  const of = (accountId: string, queries: Queries = database): Promise<Passkey[]> =>
    queries.query(`SELECT ${PASSKEY_COLUMNS} FROM passkeys WHERE account_id = $1 ORDER BY created_at, id`, [accountId]);

  async function useUp(tx: Queries, { text, seconds }: Challenge): Promise<boolean> {
    const isFirst = await tx.query(
      `INSERT INTO used_challenges (challenge_hash, expires_at) VALUES ($1, $2)
        ON CONFLICT DO NOTHING RETURNING 1`,
      [sha256(text), new Date(clock() + seconds * 1000)],
    );
    return isFirst.length > 0;
  }

  async function removeIn(tx: Queries, accountId: string, id: string): Promise<string | undefined> {
    const [gone] = await tx.query<{ name: string }>(
      'DELETE FROM passkeys WHERE account_id = $1 AND id = $2 RETURNING name',
      [accountId, id],
    );
    return gone?.name;
  }

  return {
    of: (accountId: string) => of(accountId),

    has: async (accountId: string): Promise<boolean> => (await of(accountId)).length > 0,

    /**
     * Returns the account's user handle (WebAuthn §4), under which authenticators store its passkeys: 64 characters of
     * `[A-Za-z0-9_-]`. It is random, so that it does not reveal the user, and never changes, so that a new passkey on
     * the same authenticator replaces the former one.
     */
    async handleOf(accountId: string): Promise<string> {
      await database.query('UPDATE accounts SET passkey_handle = $2 WHERE id = $1 AND passkey_handle IS NULL', [
        accountId,
        randomId('', 64),
      ]);
      const [row] = await database.query<{ handle: string }>(
        'SELECT passkey_handle AS handle FROM accounts WHERE id = $1',
        [accountId],
      );
      if (row === undefined) throw new Error('the account has been deleted');
      return row.handle;
    },

    async find(id: string): Promise<Passkey | undefined> {
      if (!isPasskeyId(id)) return undefined;
      return (await database.query<Passkey>(`SELECT ${PASSKEY_COLUMNS} FROM passkeys WHERE id = $1`, [id]))[0];
    },

    async findKey(credentialId: string): Promise<PasskeyKey | undefined> {
      const [key] = await database.query<PasskeyKey>(
        `SELECT ${PASSKEY_COLUMNS}, public_key AS "publicKey", may_sync AS "maySync",
            (SELECT passkey_handle FROM accounts WHERE id = account_id) AS handle
          FROM passkeys WHERE credential_id = $1`,
        [credentialId],
      );
      return key;
    },

    /**
     * Stores and records a new passkey, or returns why not: `over` if the challenge was answered before, `full` if the
     * account has `MAX_PASSKEYS`, `known` if an account already has this passkey.
     */
    add: ({
      accountId,
      name,
      challenge,
      origin,
      requireMayAdd,
      ...made
    }: NewPasskey): Promise<Passkey | 'over' | 'full' | 'known'> =>
      // Lock the account, so that each of several parallel additions counts the earlier ones.
      lockedTransactionOf(database, accountId, async (tx) => {
        await requireMayAdd(tx);
        if ((await of(accountId, tx)).length >= MAX_PASSKEYS) return 'full';
        if (!(await useUp(tx, challenge))) return 'over';
        const [passkey] = await tx.query<Passkey>(
          `INSERT INTO passkeys (id, credential_id, account_id, public_key, counter, transports,
              may_sync, is_synced, name, created_at)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
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
            name,
            new Date(clock()),
          ],
        );
        if (!passkey) return 'known';
        const details = detailsOf(passkey);
        await activity.record({ action: 'passkey_added', actor: 'person', accountId, details, origin }, tx);
        return passkey;
      }),

    /**
     * Records a verified signature: uses up the challenge and compares the counter in one transaction.
     *
     * @returns the current account, or why it is refused: `over` if the challenge was answered before, `gone` if the
     *   passkey has just been removed, `copied` if the counter did not grow (recorded, because another authenticator
     *   seems to have the same key)
     */
    use: (
      passkey: Passkey,
      { counter, isSynced, challenge, origin }: Pick<NewPasskey, 'counter' | 'isSynced' | 'challenge' | 'origin'>,
    ): Promise<Account | 'over' | 'gone' | 'copied'> =>
      transactionOf(database, passkey.accountId, async (tx) => {
        if (!(await useUp(tx, challenge))) return 'over';
        // Web Authentication §6.1.1: a counter, if there is one, grows with each signature.
        const grown = await tx.query(
          `UPDATE passkeys SET counter = $2, is_synced = $3, last_used_at = $4
            WHERE id = $1 AND (counter < $2 OR (counter = 0 AND $2 = 0)) RETURNING 1`,
          [passkey.id, counter, isSynced, new Date(clock())],
        );
        const { accountId } = passkey;
        if (grown.length > 0) return (await readAccount(tx, accountId)) ?? 'gone';
        const kept = await tx.query('SELECT FROM passkeys WHERE id = $1', [passkey.id]);
        if (kept.length === 0) return 'gone';
        const details = { reason: 'copied', ...detailsOf(passkey) };
        await activity.record({ action: 'passkey_refused', actor: 'person', accountId, details, origin }, tx);
        return 'copied';
      }),

    async rename(accountId: string, id: string, name: string): Promise<boolean> {
      if (!isPasskeyId(id)) return false;
      const renamed = await database.query(
        'UPDATE passkeys SET name = $3 WHERE account_id = $1 AND id = $2 RETURNING 1',
        [accountId, id, name],
      );
      return renamed.length > 0;
    },

    /**
     * Removes a passkey, and ends every session of the account. For operators, who may also remove the last sign-in
     * method, unlike a user (see sign-in-methods.ts).
     *
     * @returns true if the account had this passkey
     */
    remove: (accountId: string, id: string, inTransaction: InTransaction): Promise<boolean> =>
      lockedTransactionOf(database, accountId, async (tx) => {
        const name = await removeIn(tx, accountId, id);
        if (name === undefined) return false;
        await endSessionsIn(tx, accountId);
        await inTransaction(tx);
        return true;
      }),

    /** The passkeys as sign-in methods. @param isOn true if the settings allow sign-ins with passkeys */
    listMethods: (isOn: boolean): MethodsOfKind => ({
      of: async (accountId, tx = database) =>
        (await of(accountId, tx)).map(({ id, name, createdAt, lastUsedAt }) => ({
          id,
          lastUsedAt: lastUsedAt ?? undefined,
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
