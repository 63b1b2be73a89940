/** Explains a token or a code, from the token store and the recorded ends. */
import { CAUSES, type EndingCause } from '../../accounts/activity/activity-words.ts';
import {
  createTokenFormats,
  type PresentedAccessToken,
  type PresentedRefreshToken,
  type PresentedValue,
  readValue,
} from '../../authorizations/token-formats.ts';
import { systemClock } from '../../base/clock.ts';
import type { AuthorizationRecord } from '../../storage/token-store.ts';
import type { Registries } from '../registries.ts';
import { atSeconds, explainHolders, type Facts, findHolders, unknownValue } from './credentials.ts';
import type { Explanation } from './explanation.ts';

const isPast = (seconds: number): boolean => seconds * 1000 <= systemClock();

/** The remedy if no token of the authorization can become valid again. */
const AUTHORIZE_AGAIN = 'The client must send the person through the authorization again.';

const REMEDY: Readonly<Record<EndingCause, string>> = {
  client_revoked: 'As the client wanted: it must send the person through the authorization again.',
  code_replayed:
    'The client must exchange each code once. If it did, somebody else had the code: see that its redirect URIs lead nowhere else.',
  refresh_token_replayed:
    'The client must keep the refresh token of each answer, before it uses it, in one place for all its workers. If it does, somebody else has a copy.',
  person_disconnected: 'As the person wanted: they may connect the client again.',
  operator_revoked: 'The person may connect the client again.',
  client_deleted: 'Nothing is to be done: the client is gone for good.',
};

/** @param text a code, an access token or a refresh token */
export async function explainToken(registries: Registries, text: string): Promise<Explanation> {
  const value = readValue(text);
  if (!value) return { state: 'malformed', why: 'Its last characters are not right.' };
  return explainPresented(registries, value.authorizationId, value);
}

/** @param id the public ID, as resource servers and the log have it */
export const explainAuthorization = (registries: Registries, id: string): Promise<Explanation> =>
  explainPresented(registries, id, undefined);

async function explainPresented(
  registries: Registries,
  id: string,
  value: PresentedValue | undefined,
): Promise<Explanation> {
  const store = await registries.tokenStore();
  const record = await store.readAuthorization(id);
  const facts = factsOf(value, record);
  // Trust the recorded end first: the token store may have been restored from an older backup.
  const ended = await registries.revocations.find(id);
  if (ended) {
    const { cause, at } = ended;
    const revived = record ? ' The token store has it again: `revoke --recorded` ends it.' : '';
    return {
      ...facts,
      ...(await findHolders(registries, ended)),
      state: 'revoked',
      why: `${value ? 'Its' : 'The'} authorization was ended: ${CAUSES[cause]}.${revived}`,
      remedy: REMEDY[cause],
      revokedAt: at,
    };
  }
  if (!record) return { ...facts, ...unknownValue('Its authorization is not there any more.') };
  const forged = value && forgedFault(registries, value, record);
  if (forged) return forged;
  return explainHolders(registries, record, facts, async () => {
    const end = await endOfConnection(registries, record);
    const found = end ?? stateOf(value, record, registries.settings.tokens);
    if (!value || registries.keys()) return found;
    return { ...found, why: `${found.why} Whether it is genuine was not checked: no token keys.` };
  });
}

function factsOf(
  value: PresentedValue | undefined,
  record: AuthorizationRecord | undefined,
): Facts {
  if (!value) {
    if (!record) return {};
    return { issuedAt: atSeconds(record.approvedAt), expiresAt: atSeconds(record.usableUntil) };
  }
  if (value.kind === 'access_token') {
    return { issuedAt: atSeconds(value.issuedAt), expiresAt: atSeconds(value.expiresAt) };
  }
  if (!record) return {};
  const { approvedAt, rotation, rotatedAt, usableUntil } = record;
  if (value.kind === 'code') {
    const expiresAt = rotation < 0 && { expiresAt: atSeconds(usableUntil) };
    return { issuedAt: atSeconds(approvedAt), ...expiresAt };
  }
  return {
    ...(rotation > 0 && { rotatedAt: new Date(rotatedAt) }),
    ...(rotation === value.rotation && {
      issuedAt: new Date(rotatedAt),
      expiresAt: atSeconds(usableUntil),
    }),
  };
}

/** Returns undefined if it is genuine, or if this environment has no keys to check it. */
function forgedFault(
  registries: Registries,
  value: PresentedValue,
  { secret }: AuthorizationRecord,
) {
  const keys = registries.keys()?.tokenKeys;
  if (!keys || createTokenFormats(keys).isGenuine(value, secret)) return undefined;
  return {
    state: 'unknown',
    why: 'No token key of this configuration made it: a character is wrong, it is of another deployment, or its key was taken out.',
    remedy: 'Compare it with what the client keeps; `keys` lists the keys by fingerprint.',
  } as const;
}

/** Returns undefined if the connection did not end since the authorization was approved. */
async function endOfConnection(
  { connections }: Registries,
  { accountId, clientId, generation }: AuthorizationRecord,
): Promise<Explanation | undefined> {
  if (generation === undefined) return undefined;
  if ((await connections.generationOf(accountId, clientId)) === generation) return undefined;
  const end = await connections.endOf(accountId, clientId);
  return {
    state: 'revoked',
    why: end
      ? `Its connection was ended: ${CAUSES[end.cause]}.`
      : 'Its connection was ended, and the person connected the client anew since.',
    remedy: end ? REMEDY[end.cause] : AUTHORIZE_AGAIN,
    ...(end && { revokedAt: end.at }),
  };
}

function stateOf(
  value: PresentedValue | undefined,
  record: AuthorizationRecord,
  settings: Registries['settings']['tokens'],
): Explanation {
  switch (value?.kind) {
    case undefined:
      return authorizationState(record);
    case 'access_token':
      return accessTokenState(value);
    case 'refresh_token':
      return refreshTokenState(value, record, settings);
    case 'code':
      return codeState(record);
  }
}

function authorizationState(record: AuthorizationRecord): Explanation {
  const { endsAt, rotation, usableUntil } = record;
  if (rotation < 0) return codeState(record);
  if (isPast(usableUntil) || (endsAt !== undefined && isPast(endsAt))) {
    const why = 'Its last refresh token was not used in time.';
    return { state: 'expired', why, remedy: AUTHORIZE_AGAIN };
  }
  return { state: 'active', why: `It works, and was refreshed ${rotation} times.` };
}

function accessTokenState({ expiresAt }: PresentedAccessToken): Explanation {
  if (!isPast(expiresAt)) {
    return { state: 'active', why: 'It works: introspection answers active.' };
  }
  const remedy = 'The client gets another one with its refresh token.';
  return { state: 'expired', why: 'It has expired; its authorization is active.', remedy };
}

function codeState({ rotation, usableUntil }: AuthorizationRecord): Explanation {
  if (rotation >= 0) {
    return {
      state: 'used',
      why: 'It was exchanged for tokens. Presented again, it ends them.',
      remedy:
        'The client must exchange each code once, and not repeat a request that may have arrived.',
    };
  }
  if (!isPast(usableUntil)) return { state: 'active', why: 'It was not exchanged yet.' };
  const why = 'The client did not exchange it in time.';
  return { state: 'expired', why, remedy: AUTHORIZE_AGAIN };
}

function refreshTokenState(
  value: PresentedRefreshToken,
  record: AuthorizationRecord,
  settings: Registries['settings']['tokens'],
): Explanation {
  const { endsAt, usableUntil, rotation } = record;
  if (endsAt !== undefined && isPast(endsAt)) {
    const why = 'Its authorization has reached the absolute age.';
    return { state: 'expired', why, remedy: AUTHORIZE_AGAIN };
  }
  if (value.rotation < rotation) return replacedState(value, record, settings);
  if (isPast(usableUntil)) {
    return { state: 'expired', why: 'It was not used in time.', remedy: AUTHORIZE_AGAIN };
  }
  return { state: 'active', why: 'It is the current one.' };
}

function replacedState(
  { rotation }: PresentedRefreshToken,
  record: AuthorizationRecord,
  { retryWindowSeconds }: Registries['settings']['tokens'],
): Explanation {
  const at = new Date(record.rotatedAt).toISOString();
  const retryUntil = new Date(record.rotatedAt + retryWindowSeconds * 1000);
  const isPredecessor = rotation === record.rotation - 1;
  if (isPredecessor && retryWindowSeconds > 0) {
    const isInWindow = !isPast(retryUntil.getTime() / 1000);
    if (isPast(record.usableUntil) && (isInWindow || !record.isConfirmed)) {
      const why = 'It was refreshed, and its successor was not used in time.';
      return { state: 'expired', why, remedy: AUTHORIZE_AGAIN };
    }
    const why = 'It was refreshed. For a retry it still answers with the same successor';
    if (!record.isConfirmed) {
      return { state: 'replaced', why: `${why}, which nobody was seen to use.` };
    }
    if (isInWindow) return { state: 'replaced', why: `${why}.`, retryUntil };
  }
  const why = isPredecessor
    ? `It was replaced at ${at}, its successor was used, and the ${retryWindowSeconds} s for a retry are over.`
    : `${record.rotation - rotation} newer ones were issued after it, the last at ${at}.`;
  return {
    state: 'reused',
    why: `${why} Presented, it ends the authorization.`,
    remedy: 'The client must keep the refresh token of each answer, and use the newest one only.',
  };
}
