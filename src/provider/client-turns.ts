/** Limits how many requests of one client this node works on at once, so that no client slows down the others. */
import type { Context } from 'koa';
import { networkOf } from '../base/network-address.ts';
import type { Client } from '../clients/client.ts';
import { createTurnsOf } from '../storage/account-turns.ts';
import { OAuthError } from './oauth-error.ts';

/** Less than the default number of database connections of a node. See docs/scale.md. */
const AT_ONCE = 8;
/**
 * A resource server introspects the tokens of all its callers, so it needs a higher limit when a slow store delays each
 * answer. Often there is only one resource server. The operator runs it, and can stop it if it loops.
 */
const AT_ONCE_RESOURCE_SERVER = 64;
const MAX_WAITING = 1_000;
/** Keep the wait short: the request must still finish before a stopping node cuts connections (DRAIN_LIMIT_MS). */
const MAX_WAIT_MS = 2_000;

export type ClientTurns = ReturnType<typeof createClientTurns>;

/**
 * Returns a function that runs the work of an authenticated client. Only a limited number of its requests run at once.
 * Further requests wait in the order of their arrival, until their caller disconnects. A refused request can be sent
 * again, because nothing is consumed before the work starts.
 *
 * Anyone can send the id of a public client, so its requests share a queue only with those of the same network.
 *
 * @throws OAuthError `temporarily_unavailable` (503) if too many requests wait, or one waited for too long, and
 * `slow_down` (429) for a public client; CallerLeft if the caller disconnected while waiting
 */
export function createClientTurns(timeoutFactor = 1) {
  const limits = { maxWaiting: MAX_WAITING, maxWaitMs: MAX_WAIT_MS * timeoutFactor, refusal: stillInProgress };
  const ofClient = createTurnsOf({ ...limits, atOnce: AT_ONCE });
  // Strangers can fill this queue, so it refuses with 429: a 503 counts as our failure, and alerts the operator.
  const ofPublicClient = createTurnsOf({ ...limits, atOnce: AT_ONCE, refusal: tooManyAtOnce });
  const ofResourceServer = createTurnsOf({ ...limits, atOnce: AT_ONCE_RESOURCE_SERVER });
  return <Result>(
    { id, kind }: Client,
    { ip, res }: Pick<Context, 'ip' | 'res'>,
    work: (hasWaited: boolean) => Promise<Result>,
    /** False if the work must run even if the caller disconnects, as for a revocation. */
    isForCaller = true,
  ) => {
    const inTurn = {
      public: ofPublicClient,
      'resource-server': ofResourceServer,
      confidential: ofClient,
      machine: ofClient,
    }[kind];
    return inTurn(kind === 'public' ? `${id} ${networkOf(ip)}` : id, work, undefined, isForCaller ? res : undefined);
  };
}

/** The text must be true for a client that sends too many requests, and also if a slow store delays a few requests. */
const IN_PROGRESS = 'earlier requests of this client are still in progress: repeat this one, or send fewer at a time';
const stillInProgress = (): OAuthError => new OAuthError(503, 'temporarily_unavailable', IN_PROGRESS, RETRY_AFTER);
const tooManyAtOnce = (): OAuthError => new OAuthError(429, 'slow_down', IN_PROGRESS, RETRY_AFTER);
const RETRY_AFTER = { 'Retry-After': '2' };
