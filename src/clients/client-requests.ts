/** Sends the requests of a watched client to all nodes as they happen; they are never stored. */
import type { Logger } from 'pino';
import type { Clock } from '../base/clock.ts';
import { isClientId } from '../base/random-id.ts';
import { createBackgroundWriter } from '../storage/background-writer.ts';
import { type ChangeFeed, sendToAllNodes } from '../storage/change-feed.ts';
import type { Queries } from '../storage/queries.ts';
import { cut, withoutSecrets } from './client-problems.ts';

export interface ClientRequest {
  readonly clientId: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly requestId: string;
  readonly step: 'authorize' | 'token' | 'revoke';
  readonly grantType?: string | undefined;
  /** The code that the client received and its exact cause; absent if the request succeeded. */
  readonly error?: string | undefined;
  readonly cause?: string | undefined;
}

export type ClientRequests = ReturnType<typeof createClientRequests>;

const WATCH_MS = 600_000;
/** A watch is announced again only if its last announcement is older than this. */
const RENEWAL_MS = 60_000;
/** Time from the first request to the message, which contains all later requests. */
const PAUSE_MS = 200;
/** Maximum number of requests of all clients in one message: no user could read more. */
const MAX_WAITING = 40;
const MAX_LATEST = 20;
const MAX_WATCHED = 1_000;
/** PostgreSQL limits a message to 7,999 bytes. */
const MAX_MESSAGE_BYTES = 7_900;
const MAX_TEXT_LENGTH = 200;

interface Watch {
  /** When the nodes stop announcing the client's requests, in milliseconds since the epoch. */
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

  function startWatch(clientId: string): void {
    if (!isClientId(clientId)) return;
    const latest = watchOf(clientId)?.latest ?? [];
    // Move this client to the end: the one whose watch is oldest must be the first key.
    watched.delete(clientId);
    if (watched.size >= MAX_WATCHED) watched.delete(watched.keys().next().value ?? '');
    watched.set(clientId, { until: clock() + WATCH_MS, latest });
  }

  function receive(request: ClientRequest): void {
    const watch = watchOf(request.clientId);
    if (watch) watch.latest = [request, ...watch.latest].slice(0, MAX_LATEST);
    for (const listener of listeners.get(request.clientId) ?? []) listener(request);
  }

  changes.onMessage((text) => {
    const message = messageFrom(text);
    if (!message) return;
    if ('watch' in message) startWatch(message.watch);
    else message.requests.forEach(receive);
  });

  const send = (message: Message): Promise<unknown> =>
    sendToAllNodes(database, JSON.stringify(message)).catch((err: unknown) => {
      log.debug({ err }, "a viewer of the client's requests was not notified");
    });

  async function write(waiting: readonly ClientRequest[]): Promise<readonly ClientRequest[]> {
    const requests = [...waiting];
    // Many long texts exceed the limit: leave out the last requests.
    while (Buffer.byteLength(JSON.stringify({ requests })) > MAX_MESSAGE_BYTES) requests.pop();
    if (requests.length > 0) await send({ requests });
    return [];
  }

  const writer = createBackgroundWriter({ pauseMs: PAUSE_MS, maxWaiting: MAX_WAITING, write });

  return {
    /**
     * Announces a request. If the client is not watched this costs one look-up in memory; otherwise
     * the message is sent in the background. The request never waits for it.
     */
    // Copy only these fields: callers may pass richer objects.
    record({ clientId, requestId, step, cause, grantType, error }: Omit<ClientRequest, 'at'>): void {
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

    /** Makes every node announce this client's requests for the next ten minutes. */
    async watch(clientId: string): Promise<void> {
      const watch = watchOf(clientId);
      if (watch && watch.until - clock() > WATCH_MS - RENEWAL_MS) return;
      startWatch(clientId);
      await send({ watch: clientId });
    },

    /** Returns the requests since the watch began, newest first, at most 20. */
    latest: (clientId: string): readonly ClientRequest[] => watchOf(clientId)?.latest ?? [],

    /** @returns a function that removes `listener`. */
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
  text === undefined ? undefined : cut(withoutSecrets(text), MAX_TEXT_LENGTH);

/** Returns undefined for a message that only nodes of another version understand. */
function messageFrom(text: string): Message | undefined {
  try {
    const message = JSON.parse(text);
    if (typeof message.watch === 'string' || Array.isArray(message.requests)) return message;
  } catch {}
  return undefined;
}
