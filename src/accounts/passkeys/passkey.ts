/** The stored record of a passkey. */

export interface Passkey {
  readonly id: string;
  /** The authenticator's id for the passkey, in base64url. */
  readonly credentialId: string;
  readonly accountId: string;
  readonly name: string;
  /** How browsers reach the authenticator: `internal`, `usb`, … */
  readonly transports: readonly string[];
  /** True if the passkey is backed up: a user who loses the device still has it. */
  readonly isSynced: boolean;
  readonly createdAt: Date;
  readonly lastUsedAt: Date | undefined;
}

/** A passkey and the values to check a browser's response with. */
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
  readonly aaguid: string;
}

const ID = /^pk_[A-Za-z0-9_-]{16}$/;
export const isPasskeyId = (id: string): boolean => ID.test(id);

export const PASSKEY_COLUMNS = 'id, credential_id, account_id, name, transports, is_synced, created_at, last_used_at';

/** Returns the details of log entries about a passkey. */
export const detailsOf = ({ id, name }: Pick<Passkey, 'id' | 'name'>) => ({
  passkey_id: id,
  passkey_name: name,
});

export interface PasskeyRow {
  readonly id: string;
  readonly credential_id: string;
  readonly account_id: string;
  readonly name: string;
  readonly transports: string[];
  readonly is_synced: boolean;
  readonly created_at: Date;
  readonly last_used_at: Date | null;
}

export interface KeyRow extends PasskeyRow {
  readonly public_key: string;
  readonly may_sync: boolean;
  readonly handle: string;
}

export const passkeyFrom = (row: PasskeyRow): Passkey => ({
  id: row.id,
  credentialId: row.credential_id,
  accountId: row.account_id,
  name: row.name,
  transports: row.transports,
  isSynced: row.is_synced,
  createdAt: row.created_at,
  lastUsedAt: row.last_used_at ?? undefined,
});

export const keyFrom = (row: KeyRow): PasskeyKey => ({
  ...passkeyFrom(row),
  publicKey: row.public_key,
  maySync: row.may_sync,
  handle: row.handle,
});
