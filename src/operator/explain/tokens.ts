/** Explains a token or a code, from the token store and the recorded revocations. */
import { CAUSES, type EndingCause } from '../../accounts/activity/activity-words.ts';
import {
  createTokenFormats,
  isFromBeforeRenewal,
  type PresentedAccessToken,
  type PresentedRefreshToken,
  type PresentedValue,
  readValue,
} from '../../authorizations/token-formats.ts';
import { systemClock } from '../../base/clock.ts';
import type { Client } from '../../clients/client.ts';
import type { AuthorizationRecord } from '../../storage/token-store.ts';
import { inEnglish } from '../../texts/texts.ts';
import type { Registries } from '../registries.ts';
import { atSeconds, explainParties, type Facts, findParties, renewedSince, unknownValue } from './credentials.ts';
import type { Explanation } from './explanation.ts';

const isPast = (seconds: number): boolean => seconds * 1000 <= systemClock();

/** The remedy if no token of the authorization can become valid again. */
const AUTHORIZE_AGAIN = 'The client must send the person through the authorization again.';

const REMEDY: Readonly<Record<EndingCause, string>> = {
  client_revoked: 'The client revoked it itself. To connect again, it must send the person through the authorization.',
  code_replayed:
    'The client must exchange each code only once. If it did, an attacker had the code: ' +
    'check that its redirect URIs lead only to the client.',
  refresh_token_replayed:
    'The client must store the refresh token of each answer before using it, in one place ' +
    'for all its workers. If it does, an attacker has a copy.',
  person_disconnected: 'The person ended it themselves: they may connect the client again.',
  operator_revoked: 'The person may connect the client again.',
  client_deleted: 'Nothing can be done: the client was deleted.',
  leaked: 'Find out how it became public; then the person may connect the client again.',
  time_limit: 'The person chose until when it was connected: they may connect the client again.',
};

/** @param text a code, an access token or a refresh token */
export async function explainToken(registries: Registries, text: string): Promise<Explanation> {
  const value = readValue(text);
  if (!value) return { state: 'malformed', why: 'The last characters of this value are wrong.' };
  return explainPresented(registries, value.authorizationId, value);
}

/** @param id the public ID, as in the log and in answers to resource servers */
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
  // The recorded revocation decides, whatever the token store has.
  const ended = await registries.revocations.find(id);
  if (ended) {
    const { cause, at } = ended;
    return {
      ...facts,
      ...(await findParties(registries, ended)),
      state: 'revoked',
      why: `The authorization was ended: ${inEnglish(CAUSES[cause])}.`,
      remedy: REMEDY[cause],
      revokedAt: at,
    };
  }
  if (!record) return { ...facts, ...unknownValue('The authorization no longer exists.') };
  const forged = value && forgedFault(registries, value, record);
  if (forged) return forged;
  return explainParties(registries, record, facts, async (client) => {
    const end = (await endOfConnection(registries, record)) ?? endOfGeneration(value, record, client);
    const found = end ?? stateOf(value, record, registries.settings.tokens);
    if (!value || registries.keys()) return found;
    return {
      ...found,
      why: `${found.why} Its authenticity was not checked, because this environment has no token keys.`,
    };
  });
}

function factsOf(value: PresentedValue | undefined, record: AuthorizationRecord | undefined): Facts {
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

/** Returns why a value is forged; undefined if it is genuine, or without keys to check it. */
function forgedFault(registries: Registries, value: PresentedValue, { secret }: AuthorizationRecord) {
  const keys = registries.keys()?.tokenKeys;
  if (!keys || createTokenFormats(keys).isGenuine(value, secret)) return undefined;
  return {
    state: 'unknown',
    why:
      'No token key of this configuration matches it: a character is wrong, it belongs to ' +
      'another deployment, or its key was removed.',
    remedy: 'Compare it with what the client has stored; `keys list` shows the keys by fingerprint.',
  } as const;
}

/** Returns undefined if the connection has not ended since the authorization was approved. */
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
      ? `The connection was ended: ${inEnglish(CAUSES[end.cause])}.`
      : 'The connection was ended, and the person has connected the client again since.',
    remedy: end ? REMEDY[end.cause] : AUTHORIZE_AGAIN,
    ...(end && { revokedAt: end.at }),
  };
}

/** Returns undefined unless the client was renewed, or everything issued to it has ended. */
function endOfGeneration(value: PresentedValue | undefined, record: AuthorizationRecord, client: Client) {
  if (record.clientGeneration < client.endedThrough) {
    const why = 'The operator ended everything that was issued to the client.';
    return { state: 'revoked', why, remedy: REMEDY.operator_revoked } as const;
  }
  if (value === undefined || !isFromBeforeRenewal({ value, authorization: record }, client)) return undefined;
  if (value.kind !== 'refresh_token') return renewedSince(client);
  // While no refresh has followed the renewal, any refresh token works with the new secret.
  if (record.clientGeneration < client.generation) {
    const why = 'It was issued before the client was renewed: it works once more, only with a secret of after that.';
    return { state: 'replaced', why } as const;
  }
  return undefined;
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
    const why = 'The last refresh token of this authorization expired unused.';
    return { state: 'expired', why, remedy: AUTHORIZE_AGAIN };
  }
  return {
    state: 'active',
    why: `This authorization is valid, and was refreshed ${rotation} times.`,
  };
}

function accessTokenState({ expiresAt }: PresentedAccessToken): Explanation {
  if (!isPast(expiresAt)) {
    return { state: 'active', why: 'This token is valid: introspection answers active.' };
  }
  const remedy = 'The client can get a new one with its refresh token.';
  return {
    state: 'expired',
    why: 'This access token has expired; its authorization is active.',
    remedy,
  };
}

function codeState({ rotation, usableUntil }: AuthorizationRecord): Explanation {
  if (rotation >= 0) {
    return {
      state: 'used',
      why: 'This code was exchanged for tokens. A second exchange ends them.',
      remedy: 'The client must exchange each code only once, and must not repeat a request that may have arrived.',
    };
  }
  if (!isPast(usableUntil)) return { state: 'active', why: 'This code was not exchanged yet.' };
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
    const why = 'The authorization of this token has reached its maximum age (tokens.absolute_age).';
    return { state: 'expired', why, remedy: AUTHORIZE_AGAIN };
  }
  if (value.rotation < rotation) return replacedState(value, record, settings);
  if (isPast(usableUntil)) {
    return { state: 'expired', why: 'This refresh token expired unused.', remedy: AUTHORIZE_AGAIN };
  }
  return { state: 'active', why: 'This is the current refresh token.' };
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
      const why = 'This refresh token was refreshed, and its successor expired unused.';
      return { state: 'expired', why, remedy: AUTHORIZE_AGAIN };
    }
    const why = 'This refresh token was refreshed. A retry still returns the same successor';
    if (!record.isConfirmed) {
      return { state: 'replaced', why: `${why}, because no use of the successor was seen.` };
    }
    if (isInWindow) return { state: 'replaced', why: `${why}.`, retryUntil };
  }
  const why = isPredecessor
    ? `This refresh token was replaced at ${at}, its successor was used, and the retry window of ` +
      `${retryWindowSeconds} s has passed.`
    : `${record.rotation - rotation} newer refresh tokens were issued after this one, the last at ${at}.`;
  return {
    state: 'reused',
    why: `${why} Using it ends the authorization.`,
    remedy: 'The client must store the refresh token of each answer, and use only the newest one.',
  };
}
