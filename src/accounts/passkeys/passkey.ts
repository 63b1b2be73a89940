/** The stored record of a passkey. */

export interface Passkey {
  readonly id: string;
  /** The authenticator's id for the passkey, in base64url. */
  readonly credentialId: string;
  readonly accountId: string;
  readonly name: string;
  /** How browsers reach the authenticator, for example `internal` or `usb`. */
  readonly transports: readonly string[];
  /** True if the passkey is backed up, so that a user who loses the device still has the passkey. */
  readonly isSynced: boolean;
  readonly createdAt: Date;
  readonly lastUsedAt: Date | null;
}

export interface PasskeyKey extends Passkey {
  /** The public key as COSE_Key, in base64url. */
  readonly publicKey: string;
  readonly maySync: boolean;
  /** The user handle of the passkey's account (see `handleOf`). */
  readonly handle: string;
}

export interface MadePasskey
  extends Pick<PasskeyKey, 'credentialId' | 'publicKey' | 'transports' | 'maySync' | 'isSynced'> {
  readonly counter: number;
}

const ID = /^pk_[A-Za-z0-9_-]{16}$/;
export const isPasskeyId = (id: string): boolean => ID.test(id);

export const PASSKEY_COLUMNS = `id, credential_id AS "credentialId", account_id AS "accountId", name, transports,
  is_synced AS "isSynced", created_at AS "createdAt", last_used_at AS "lastUsedAt"`;

export const detailsOf = ({ id, name }: Pick<Passkey, 'id' | 'name'>) => ({
  passkey_id: id,
  passkey_name: name,
});
