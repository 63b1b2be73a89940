/** The secret of a client: how a new one is made and how a presented one is compared. */
import { timingSafeEqual } from 'node:crypto';
import { formTest, newValue, randomId, sha256 } from '../random-id.ts';
import type { Client, ClientSecret } from './client.ts';

/** An old and a new secret, so that a rotation has no moment without a valid one. */
export const LIVE_SECRETS = 2;

const isSecret = formTest('client_secret');
/** No secret has this hash: it fills the places of secrets that do not exist. */
const NO_HASH = Buffer.alloc(43);

export interface NewClientSecret {
  readonly id: string;
  /** Shown once and kept nowhere. */
  readonly value: string;
  readonly hash: string;
  readonly lastFour: string;
}

/** 258 random bits, so that a fast hash is enough to keep them under (OWASP ASVS 6.5.2). */
export function newClientSecret(): NewClientSecret {
  const value = newValue('client_secret');
  return {
    id: randomId('sec_', 16),
    value,
    hash: sha256(value),
    lastFour: value.slice(-4),
  };
}

/**
 * The live secret of the client that `presented` is, if it is one. The work is the same for an
 * unknown client (`undefined`), a client without secrets, a wrong and a right one, so that the
 * time tells nothing. Whether the client may act at all (suspension) is for the caller to ask.
 */
export function findSecret(
  client: Client | undefined,
  presented: string,
): ClientSecret | undefined {
  // Exactly our alphabet and length: a value followed by NUL, a space or a newline is another one.
  const isWellFormed = isSecret(presented);
  const hash = Buffer.from(sha256(isWellFormed ? presented : ''));
  let found: ClientSecret | undefined;
  for (let place = 0; place < LIVE_SECRETS; place += 1) {
    const live = client?.secrets[place];
    const isEqual = timingSafeEqual(hash, live === undefined ? NO_HASH : Buffer.from(live.hash));
    found = isEqual ? live : found;
  }
  return isWellFormed ? found : undefined;
}

/** Whether `presented` is a live secret of the client; as `findSecret`. */
export const matchesSecret = (client: Client | undefined, presented: string): boolean =>
  findSecret(client, presented) !== undefined;
