/** A subscription of the partner app with its messages, for display. */
import { setTimeout as delay } from 'node:timers/promises';
import { createClient, NetworkError } from 'graphql-sse';
import type { WireLog } from './wire-log.ts';

export interface Watch {
  readonly lines: readonly WatchLine[];
  /** True after the last message of the subscription. */
  readonly isOver: boolean;
  /** @returns a function that stops listening. */
  onChange(listener: () => void): () => void;
  close(): void;
}

export interface WatchLine {
  readonly at: Date;
  readonly text: string;
}

/** Needed because an API without a change stream ends every subscription immediately. */
const RETRY_PAUSE_MS = 1_000;

const STOCK_CHANGED = 'subscription { stockChanged { warehouse { name } level { article count } } }';

interface Changed {
  readonly stockChanged: {
    readonly warehouse: { readonly name: string };
    readonly level: { readonly article: string; readonly count: number };
  };
}

/** Opens the subscription, and reopens it when it ends, until the API refuses the token. */
export function watchStock(parts: {
  readonly apiUrl: URL;
  /** Returns the current access token. */
  readonly accessToken: () => string;
  readonly log: WireLog;
}): Watch {
  const { apiUrl, accessToken, log } = parts;
  const lines: WatchLine[] = [];
  const listeners = new Set<() => void>();
  let isOver = false;

  function say(text: string): void {
    lines.push({ at: new Date(), text });
    for (const listener of listeners) listener();
  }

  const client = createClient({
    url: apiUrl.href,
    headers: () => ({ authorization: `Bearer ${accessToken()}` }),
    retryAttempts: 0,
    async fetchFn(url: string, options: Parameters<WireLog['fetchStream']>[1]) {
      const response = await log.fetchStream(url, options);
      if (response.ok) say('The subscription is open.');
      return response;
    },
  });

  async function watch(): Promise<void> {
    while (!isOver) {
      const opened = performance.now();
      for await (const { data } of client.iterate<Changed>({ query: STOCK_CHANGED })) {
        const { warehouse, level } = data?.stockChanged ?? {};
        if (level) say(`${warehouse?.name}: ${level.article} is now ${level.count}.`);
      }
      if (isOver) return;
      say('The API ended the subscription: the access of this token ended or changed.');
      if (performance.now() - opened < RETRY_PAUSE_MS) await delay(RETRY_PAUSE_MS);
    }
  }

  watch().catch((error: unknown) => {
    if (isOver) return;
    isOver = true;
    const status = error instanceof NetworkError ? error.response?.status : undefined;
    const what = status ? `The next request was refused with ${status}` : 'The API cannot be reached';
    say(`${what}: the subscription has ended.`);
  });

  return {
    lines,
    get isOver() {
      return isOver;
    },
    onChange(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    close() {
      isOver = true;
      client.dispose();
      for (const listener of listeners) listener();
    },
  };
}
