/** Limits how many requests of one client this node works on at once, so that no client slows down the others. */
import type { Context } from 'koa';
import { networkOf } from '../base/network-address.ts';
import type { Client } from '../clients/client.ts';
import { createTurns } from '../storage/account-turns.ts';
import { OAuthError } from './oauth-error.ts';

/** With 500 connections of one client, the answers to another then take about three times as long as with none. */
const AT_ONCE = 8;
/** A resource server asks for all of its callers. */
const AT_ONCE_RESOURCE_SERVER = 16;
const MAX_WAITING = 1_000;
const MAX_WAIT_MS = 10_000;

export type ClientTurns = ReturnType<typeof createClientTurns>;

/**
 * Runs the work of an authenticated client in its turn: further requests wait in the order of their arrival,
 * until their caller disconnects. Nothing was consumed before the turn, so a refused request can be sent again.
 *
 * Anyone can send the id of a public client, so its requests share turns only with those of the same network.
 *
 * @throws OAuthError `temporarily_unavailable` (503) if too many requests wait, or one waited for too long
 */
export function createClientTurns() {
  /** The turns of each client with requests. */
  const all = new Map<string, { readonly take: ReturnType<typeof createTurns>; requests: number }>();

  return async function inTurn<Result>(
    { id, kind }: Client,
    ctx: Context,
    work: (hasWaited: boolean) => Promise<Result>,
  ): Promise<Result> {
    const key = kind === 'public' ? `${id} ${networkOf(ctx.ip)}` : id;
    const max = kind === 'resource-server' ? AT_ONCE_RESOURCE_SERVER : AT_ONCE;
    const turns = all.get(key) ?? {
      take: createTurns(max, { maxWaiting: MAX_WAITING, maxWaitMs: MAX_WAIT_MS, refusal: tooManyAtOnce }),
      requests: 0,
    };
    all.set(key, turns);
    turns.requests += 1;
    try {
      return await turns.take(work, ctx.res);
    } finally {
      turns.requests -= 1;
      if (turns.requests === 0) all.delete(key);
    }
  };
}

function tooManyAtOnce(): OAuthError {
  const description = 'too many requests of this client at once: send fewer at a time, and repeat this one';
  return new OAuthError(503, 'temporarily_unavailable', description, { 'Retry-After': '2' });
}
