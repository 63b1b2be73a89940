/** Requests of a client as they happen, on whichever node, for who watches: kept nowhere. */
import type { Logger } from 'pino';
import type { Clock } from '../base/clock.ts';
import { isClientId } from '../base/random-id.ts';
import { createBackgroundWriter } from '../storage/background-writer.ts';
import { type ChangeFeed, messageEveryNode } from '../storage/change-feed.ts';
import type { Queries } from '../storage/queries.ts';
import { cut, withoutSecrets } from './client-problems.ts';

export interface ClientRequest {
  readonly clientId: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly requestId: string;
  readonly step: 'authorize' | 'token' | 'revoke';
  readonly grantType?: string | undefined;
  /** The code the client was answered, with its exact cause; absent where all went well. */
  readonly error?: string | undefined;
  readonly cause?: string | undefined;
}

export type ClientRequests = ReturnType<typeof createClientRequests>;

/** All times are milliseconds. */
const WATCHED = 600_000;
/** Watched again sooner than that, nobody needs to be told. */
const RENEWED = 60_000;
/** From the first request to the message that takes along those that came after it. */
const PAUSE = 200;
/** Of all clients, in one pause: what is more is for nobody to read. */
const MOST_WAITING = 40;
const MOST_LATEST = 20;
const MOST_WATCHED = 1_000;
/** A message of PostgreSQL holds 7,999 bytes. */
const MOST_BYTES = 7_900;
const LONGEST_TEXT = 200;

interface Watch {
  /** Until when the nodes tell of it. */
  until: number;
  latest: readonly ClientRequest[];
}

type Message = { readonly watch: string } | { readonly requests: readonly ClientRequest[] };

export function createClientRequests(parts: {
  readonly database: Queries;
  readonly changes: ChangeFeed;
  readonly clock: Clock;
  readonly log: Pick<Logger, 'debug'>;
}) {
  const { database, changes, clock, log } = parts;
  const watched = new Map<string, Watch>();
  const listeners = new Map<string, Set<(request: ClientRequest) => void>>();

  const watchOf = (clientId: string): Watch | undefined => {
    const watch = watched.get(clientId);
    return watch && watch.until > clock() ? watch : undefined;
  };

  function begin(clientId: string): void {
    if (!isClientId(clientId)) return;
    const latest = watchOf(clientId)?.latest ?? [];
    // The one that was watched longest ago stands first.
    watched.delete(clientId);
    if (watched.size >= MOST_WATCHED) watched.delete(watched.keys().next().value ?? '');
    watched.set(clientId, { until: clock() + WATCHED, latest });
  }

  function hear(request: ClientRequest): void {
    const watch = watchOf(request.clientId);
    if (watch) watch.latest = [request, ...watch.latest].slice(0, MOST_LATEST);
    for (const listener of listeners.get(request.clientId) ?? []) listener(request);
  }

  changes.onMessage((text) => {
    const message = messageFrom(text);
    if (!message) return;
    if ('watch' in message) begin(message.watch);
    else message.requests.forEach(hear);
  });

  const send = (message: Message): Promise<unknown> =>
    messageEveryNode(database, JSON.stringify(message)).catch((err: unknown) => {
      log.debug({ err }, 'who watches a client was not told');
    });

  async function write(waiting: readonly ClientRequest[]): Promise<readonly ClientRequest[]> {
    const requests = [...waiting];
    // Of many long texts some are left out.
    while (Buffer.byteLength(JSON.stringify({ requests })) > MOST_BYTES) requests.pop();
    if (requests.length > 0) await send({ requests });
    return [];
  }

  const writer = createBackgroundWriter({ pauseMs: PAUSE, maxWaiting: MOST_WAITING, write });

  return {
    /**
     * To be called on the request's path: costs one look-up where nobody watches the client, and no
     * round trip of the request where somebody does.
     */
    // Whoever notes it may know more of the request than anybody is to be told.
    note({ clientId, requestId, step, cause, grantType, error }: Omit<ClientRequest, 'at'>): void {
      if (!watchOf(clientId) || writer.isFull()) return;
      writer.add({
        clientId,
        requestId,
        step,
        at: clock(),
        grantType: short(grantType),
        error: short(error),
        cause: short(cause),
      });
    },

    /** Has every node tell of this client for the next ten minutes. */
    async watch(clientId: string): Promise<void> {
      const watch = watchOf(clientId);
      if (watch && watch.until - clock() > WATCHED - RENEWED) return;
      begin(clientId);
      await send({ watch: clientId });
    },

    /** Those since somebody began to watch, the newest first, 20 at most. */
    latest: (clientId: string): readonly ClientRequest[] => watchOf(clientId)?.latest ?? [],

    /** @returns a function after which `listener` hears no more. */
    subscribe(clientId: string, listener: (request: ClientRequest) => void): () => void {
      const all = listeners.get(clientId) ?? new Set();
      listeners.set(clientId, all.add(listener));
      return () => {
        all.delete(listener);
        if (all.size === 0) listeners.delete(clientId);
      };
    },
  };
}

const short = (text: string | undefined): string | undefined =>
  text === undefined ? undefined : cut(withoutSecrets(text), LONGEST_TEXT);

/** What another version of a node says may be anything. */
function messageFrom(text: string): Message | undefined {
  try {
    const message = JSON.parse(text);
    if (typeof message.watch === 'string' || Array.isArray(message.requests)) return message;
  } catch {}
  return undefined;
}
