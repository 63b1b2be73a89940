/** Constant load in the background of a test, with counted responses. */
import { setTimeout as delay } from 'node:timers/promises';

export interface SteadyLoad {
  /** Number of requests that were answered as expected. */
  readonly answered: number;
  /** The errors of the requests that were not answered as expected. */
  readonly failures: readonly string[];
  /** Resolves when `count` more requests were answered. */
  more(count: number): Promise<void>;
  /** Sends no more requests, and resolves when the last one is answered. */
  stop(): Promise<void>;
}

/** Milliseconds between a caller's response and its next request: 300 requests a second in total. */
const PAUSE = 50;
const CALLERS = 15;

/** @param requests sent by every caller in turn. If a request throws, this counts as a failure. */
export function startLoad(requests: readonly (() => Promise<void>)[]): SteadyLoad {
  let isStopped = false;
  let answered = 0;
  let turn = 0;
  const failures: string[] = [];

  async function call(): Promise<void> {
    while (!isStopped) {
      turn += 1;
      const ask = requests[turn % requests.length];
      await ask?.().then(
        () => {
          answered += 1;
        },
        (error: unknown) => failures.push(String(error)),
      );
      await delay(PAUSE);
    }
  }

  const callers = Array.from({ length: CALLERS }, call);
  return {
    get answered() {
      return answered;
    },
    failures,
    async more(count) {
      const goal = answered + count;
      // Give up if every request fails.
      const maxFailures = failures.length + count;
      while (answered < goal && failures.length < maxFailures) await delay(10);
    },
    async stop() {
      isStopped = true;
      await Promise.all(callers);
    },
  };
}
