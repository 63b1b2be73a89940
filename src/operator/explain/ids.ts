/** Determines the kind of an id from its form alone, and finds an id in a URL. */
import { isAccountId } from '../../accounts/account.ts';
import { isApiKeyId } from '../../accounts/api-keys/api-key.ts';
import { isOrganizationId, isWarehouseId } from '../../accounts/organizations/places.ts';
import { isPasskeyId } from '../../accounts/passkeys/passkey.ts';
import { isSessionId } from '../../accounts/session-list.ts';
import { isClientId } from '../../base/random-id.ts';
import { shapeOf } from './token-shape.ts';

export type IdKind =
  | 'account'
  | 'email'
  | 'organization'
  | 'warehouse'
  | 'connection'
  | 'authorization'
  | 'session'
  | 'api_key_id'
  | 'passkey'
  | 'request'
  /** A one-time token, a session, its cookie, or part of a URL: only the stores can tell. */
  | 'opaque';

interface IdForm {
  /** The prefix to name in the message about an incomplete id. */
  readonly prefix?: string;
  readonly test: (id: string) => boolean;
}

const isRequestId = (id: string): boolean => /^req_[0-9a-f]{16}$/.test(id);
const isConnectionId = (id: string): boolean => {
  const [accountId = '', clientId = '', ...rest] = id.split('/');
  return isAccountId(accountId) && isClientId(clientId) && rest.length === 0;
};
const ofLength =
  (length: number) =>
  (id: string): boolean =>
    id.length === length && /^[\w-]+$/.test(id);

const FORMS: Readonly<Record<IdKind, IdForm>> = {
  connection: { test: isConnectionId },
  account: { prefix: 'acc_', test: isAccountId },
  organization: { prefix: 'org_', test: isOrganizationId },
  warehouse: { prefix: 'wh_', test: isWarehouseId },
  session: { prefix: 'ses_', test: isSessionId },
  api_key_id: { prefix: 'key_', test: isApiKeyId },
  passkey: { prefix: 'pk_', test: isPasskeyId },
  request: { prefix: 'req_', test: isRequestId },
  email: { test: (id) => /^[^\s@]+@[^\s@]+$/.test(id) },
  authorization: { test: ofLength(22) },
  opaque: { test: ofLength(43) },
};

const KINDS = Object.keys(FORMS) as readonly IdKind[];

export const idKindOf = (id: string): IdKind | undefined => KINDS.find((kind) => FORMS[kind].test(id));

/** Returns the kind of an incomplete id, by its prefix. */
export const brokenIdKindOf = (id: string): IdKind | undefined =>
  KINDS.find((kind) => {
    const { prefix } = FORMS[kind];
    return prefix !== undefined && id.startsWith(prefix);
  });

/** Returns the last id or value in the query or the path of a URL; other text unchanged. */
export function valueIn(text: string): string {
  if (!/^https?:\/\//.test(text) || !URL.canParse(text)) return text;
  const { searchParams, pathname } = new URL(text);
  const parts = [...pathname.split('/'), ...searchParams.values()].reverse();
  const isValue = (part: string): boolean => {
    const { kind, faults } = shapeOf(part);
    return (kind !== undefined && faults.length === 0) || idKindOf(part) !== undefined;
  };
  return parts.find(isValue) ?? text;
}
