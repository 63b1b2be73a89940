/** Reads the state of a token or code from the token store and the recorded revocations. */
import { CAUSES, type EndingCause } from '../../accounts/activity/activity-words.ts';
import { isFromLeakedSecret, isValidFor, type MachineToken } from '../../authorizations/machine-tokens.ts';
import type { RecordedEnd } from '../../authorizations/revocations.ts';
import {
  createTokenFormats,
  isFromBeforeRenewal,
  type PresentedRefreshToken,
  type PresentedValue,
  readValue,
} from '../../authorizations/token-formats.ts';
import { systemClock } from '../../base/clock.ts';
import type { Client } from '../../clients/client.ts';
import type { AuthorizationRecord } from '../../storage/token-store.ts';
import { inEnglish } from '../../texts/texts.ts';
import type { Registries } from '../registries.ts';
import { type Answer, as, type Times, unknownValue, whatEnded } from './answer.ts';

const atSeconds = (seconds: number): Date => new Date(seconds * 1000);
const isPast = (seconds: number): boolean => seconds * 1000 <= systemClock();

const REMEDY: Readonly<Record<EndingCause, string>> = {
  client_revoked:
    'The client ended its access itself. To connect again, it must send the person through the authorization.',
  code_replayed:
    'The client must exchange each code only once. If it did, an attacker had the code: ' +
    'check that its redirect URIs lead only to the client.',
  refresh_token_replayed:
    'The client must store the refresh token of each answer before using it, in one place ' +
    'for all its workers. If it does, an attacker has a copy.',
  person_disconnected: 'The person ended the connection: they may connect the client again.',
  operator_revoked: 'The person may connect the client again.',
  client_deleted: 'Nothing can be done: the client was deleted.',
  leaked: 'Find out how the token or code became public. Then the person may connect the client again.',
  time_limit: 'The person chose the end date of the connection, and may connect the client again.',
};

/** The remedy if no token of the authorization can become valid again. */
const AUTHORIZE_AGAIN = 'The client must send the person through the authorization again.';
const expired = (why: string): Answer => as('expired', why, AUTHORIZE_AGAIN);
const VALID = as('active', 'This token is valid: introspection answers active.');

export type Presented = Awaited<ReturnType<typeof findPresented>>;

export async function findPresented(registries: Registries, id: string, value?: PresentedValue) {
  const record = await (await registries.tokenStore()).readAuthorization(id);
  return { value, record, ended: await registries.revocations.find(id) };
}

/** @param text a code, an access token or a refresh token @returns undefined if Gatehouse cannot have issued it */
export async function findToken(registries: Registries, text: string): Promise<Presented | undefined> {
  const value = readValue(text);
  return value && findPresented(registries, value.authorizationId, value);
}

export async function presentedState(found: Presented, registries: Registries): Promise<Answer> {
  const { value, record, ended } = found;
  const times = timesOf(value, record);
  const { why, ...answer } = await stateOf(found, registries);
  const isUnchecked = value && record && !ended && !registries.keys();
  const unchecked = ' Its authenticity was not checked, because this environment has no token keys.';
  return { ...answer, why: `${why}${isUnchecked ? unchecked : ''}`, times: { ...times, ...answer.times } };
}

async function stateOf({ value, record, ended }: Presented, registries: Registries): Promise<Answer> {
  // A recorded revocation applies even if the token store still has the authorization.
  if (ended) return endedBy('authorization', ended);
  if (!record) return unknownValue('The authorization no longer exists.');
  const keys = registries.keys()?.tokenKeys;
  if (value && keys && !createTokenFormats(keys).isGenuine(value, record.secret)) return FORGED;
  const client = await registries.clients.find(record.clientId);
  return (await endOf(value, record, client, registries)) ?? stateOfRecord(value, record, registries.settings.tokens);
}

const FORGED = as(
  'unknown',
  'No token key of this configuration matches it: a character is wrong, it belongs to ' +
    'another deployment, or its key was removed.',
  'Compare it with what the client has stored; `keys list` shows the keys by fingerprint.',
);

export const endedBy = (what: string, { cause, at }: Pick<RecordedEnd, 'cause' | 'at'>): Answer =>
  as('revoked', `The ${what} was ended: ${inEnglish(CAUSES[cause])}.`, REMEDY[cause], { revoked_at: at });

async function endOf(
  value: PresentedValue | undefined,
  record: AuthorizationRecord,
  client: Client | undefined,
  registries: Registries,
): Promise<Answer | undefined> {
  const { accountId, clientId, generation } = record;
  const { connections } = registries;
  if ((await connections.generationOf(accountId, clientId)) !== generation) {
    const end = await connections.endOf(accountId, clientId);
    if (end) return endedBy('connection', end);
    const why = 'The connection was ended, and the person has connected the client again since.';
    return as('revoked', why, AUTHORIZE_AGAIN);
  }
  if (client && record.clientGeneration < client.endedThrough) {
    const { times } = (await whatEnded(registries, { clientId, action: 'client_tokens_revoked' })) ?? {};
    const why = 'The operator ended everything that was issued to the client.';
    return as('revoked', why, REMEDY.operator_revoked, times);
  }
  if (value && client && isFromBeforeRenewal({ value, authorization: record }, client)) {
    if (value.kind !== 'refresh_token') return renewedSince(client);
    // Until the first refresh after the renewal of a client, any older refresh token works with the new secret.
    if (record.clientGeneration < client.generation) {
      const why =
        'The token was issued before the client was renewed. It works one more time, but only with a client secret ' +
        'that was created after the renewal.';
      return as('replaced', why);
    }
  }
  // The time limit of a connection ends the authorization at once, but a job records the end later.
  if (await connections.find(accountId, clientId)) return undefined;
  return as('revoked', 'The time limit of the connection has passed.', REMEDY.time_limit);
}

function renewedSince({ renewedAt }: Client): Answer {
  const remedy =
    'The client gets new tokens with its new secret. A client that acts for people also sends a refresh token.';
  const why = 'This value was issued before the client was renewed after a theft.';
  return as('revoked', why, remedy, { revoked_at: renewedAt });
}

function timesOf(value: PresentedValue | undefined, record: AuthorizationRecord | undefined): Times {
  if (value?.kind === 'access_token') {
    return { issued_at: atSeconds(value.issuedAt), expires_at: atSeconds(value.expiresAt) };
  }
  if (!record) return {};
  const { approvedAt, rotation, rotatedAt, usableUntil } = record;
  const until = { expires_at: atSeconds(usableUntil) };
  if (value?.kind !== 'refresh_token') {
    return { issued_at: atSeconds(approvedAt), ...(value && rotation >= 0 ? {} : until) };
  }
  const current = rotation === value.rotation ? { issued_at: new Date(rotatedAt), ...until } : {};
  return { ...current, rotated_at: rotation > 0 ? new Date(rotatedAt) : undefined };
}

function stateOfRecord(
  value: PresentedValue | undefined,
  record: AuthorizationRecord,
  settings: Registries['settings']['tokens'],
): Answer {
  const { endsAt, rotation } = record;
  const [isUnusable, isTooOld] = [isPast(record.usableUntil), endsAt !== undefined && isPast(endsAt)];
  if (value?.kind === 'access_token') {
    if (!isPast(value.expiresAt)) return VALID;
    if (isUnusable) return expired('This access token and the last refresh token of its authorization have expired.');
    const remedy = 'The client can get a new access token with its refresh token.';
    return as('expired', 'This access token has expired; its authorization is active.', remedy);
  }
  if (value?.kind === 'code' || (!value && rotation < 0)) {
    if (rotation >= 0) return USED;
    if (isUnusable) return expired('The client did not exchange the code in time.');
    return as('active', 'This code was not exchanged yet.');
  }
  if (!value) {
    if (isUnusable || isTooOld) return expired('The last refresh token of this authorization expired unused.');
    return as('active', `This authorization is valid, and was refreshed ${rotation} times.`);
  }
  if (isTooOld) return expired('The authorization of this token has reached its maximum age (tokens.absolute_age).');
  if (value.rotation < rotation) return replacedState(value, record, settings);
  if (isUnusable) return expired('This refresh token expired unused.');
  return as('active', 'This is the current refresh token.');
}

const USED = as(
  'used',
  'This code was exchanged for tokens. A second exchange ends these tokens.',
  'The client must exchange each code only once, and must not repeat a request that may have arrived.',
);

function replacedState(
  { rotation }: PresentedRefreshToken,
  record: AuthorizationRecord,
  { retryWindowSeconds }: Registries['settings']['tokens'],
): Answer {
  const at = new Date(record.rotatedAt).toISOString();
  const retryUntil = new Date(record.rotatedAt + retryWindowSeconds * 1000);
  // Until the second refresh after a client's renewal, all older tokens count as the predecessor: workers differ.
  const isPredecessor = rotation === record.rotation - 1 || record.rotation === record.sinceRotation;
  if (isPredecessor && retryWindowSeconds > 0) {
    const isInWindow = !isPast(retryUntil.getTime() / 1000);
    if (isPast(record.usableUntil) && (isInWindow || !record.isConfirmed)) {
      return expired('This refresh token was refreshed, and its successor expired unused.');
    }
    const why = 'This refresh token was refreshed. A retry still returns the same successor';
    if (!record.isConfirmed) return as('replaced', `${why}, because no use of the successor was seen.`);
    if (isInWindow) return as('replaced', `${why}.`, undefined, { retry_until: retryUntil });
  }
  const why = isPredecessor
    ? `This refresh token was replaced at ${at}, its successor was used, and the retry window of ` +
      `${retryWindowSeconds} s has passed.`
    : `${record.rotation - rotation} newer refresh tokens were issued after this one, the last at ${at}.`;
  const remedy = 'The client must store the refresh token of each answer, and use only the newest one.';
  return as('reused', `${why} Using it ends the authorization.`, remedy);
}

export async function machineTokenState(token: MachineToken, registries: Registries): Promise<Answer> {
  const client = await registries.clients.find(token.clientId);
  const answer = client ? await endOfMachineToken(token, client, registries) : VALID;
  const times = { issued_at: atSeconds(token.issuedAt), expires_at: atSeconds(token.expiresAt) };
  return { ...answer, times: { ...times, ...answer.times } };
}

async function endOfMachineToken(token: MachineToken, client: Client, registries: Registries): Promise<Answer> {
  if (await isValidFor(registries.clients, client, token)) return VALID;
  if (token.generation >= client.generation) {
    if (!isFromLeakedSecret(client, token)) return as('revoked', 'This token was revoked individually.');
    return as('revoked', 'The token was requested with a client secret that was found in public.');
  }
  if (token.generation >= client.endedThrough) return renewedSince(client);
  const ended = await whatEnded(registries, { clientId: client.id, action: 'client_tokens_revoked' });
  const remedy = 'The client can get a new token with its secret.';
  return { ...as('revoked', 'The operator ended all tokens of the client.', remedy), times: ended?.times ?? {} };
}
