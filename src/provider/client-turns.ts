/** Limits how many requests of one client this node works on at once, so that no client slows down the others. */
import type { Context } from 'koa';
import { networkOf } from '../base/network-address.ts';
import type { Client } from '../clients/client.ts';
import { createTurnsOf } from '../storage/account-turns.ts';
import { OAuthError } from './oauth-error.ts';

/** Fewer than the database connections of a node by default: others find a free one. Measured in docs/scale.md. */
const AT_ONCE = 8;
/**
 * A resource server asks for all of its callers, and often there is only one: its turns must not limit what a node
 * can answer while each answer waits for a slow store. The operator runs it, and can end a loop in it.
 */
const AT_ONCE_RESOURCE_SERVER = 64;
const MAX_WAITING = 1_000;
/** With the work after it, shorter than a node that stops keeps connections (DRAIN_LIMIT_MS in host/listeners.ts). */
const MAX_WAIT_MS = 2_000;

export type ClientTurns = ReturnType<typeof createClientTurns>;

/**
 * Runs the work of an authenticated client in its turn: further requests wait in the order of their arrival,
 * until their caller disconnects. Nothing was consumed before the turn, so a refused request can be sent again.
 *
 * Anyone can send the id of a public client, so its requests share turns only with those of the same network.
 *
 * @throws OAuthError `temporarily_unavailable` (503) if too many requests wait, or one waited for too long, and
 *   `slow_down` (429) for a public client; CallerLeft if its caller disconnected before the turn
 */
export function createClientTurns(timeoutFactor = 1) {
  const limits = { maxWaiting: MAX_WAITING, maxWaitMs: MAX_WAIT_MS * timeoutFactor, refusal: stillInProgress };
  const ofClient = createTurnsOf({ ...limits, atOnce: AT_ONCE });
  // Strangers can fill these turns: none of their requests may count as a failure of ours, which alerts the operator.
  const ofPublicClient = createTurnsOf({ ...limits, atOnce: AT_ONCE, refusal: tooManyAtOnce });
  const ofResourceServer = createTurnsOf({ ...limits, atOnce: AT_ONCE_RESOURCE_SERVER });
  return <Result>(
    { id, kind }: Client,
    { ip, res }: Pick<Context, 'ip' | 'res'>,
    work: (hasWaited: boolean) => Promise<Result>,
    /** False if the work counts although its caller left: who stops something need not wait for the answer. */
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

/** Also true if one request waits behind a few that a slow store holds up. */
const IN_PROGRESS = 'earlier requests of this client are still in progress: repeat this one, or send fewer at a time';
const stillInProgress = (): OAuthError => new OAuthError(503, 'temporarily_unavailable', IN_PROGRESS, RETRY_AFTER);
const tooManyAtOnce = (): OAuthError => new OAuthError(429, 'slow_down', IN_PROGRESS, RETRY_AFTER);
const RETRY_AFTER = { 'Retry-After': '2' };
