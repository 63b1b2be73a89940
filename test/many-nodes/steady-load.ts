/** Requests that go on and on beside what a test does, each of them counted. */
import { setTimeout as delay } from 'node:timers/promises';

export interface SteadyLoad {
  /** Requests that were answered as they should be. */
  readonly answered: number;
  /** What each other one got instead. */
  readonly failures: readonly string[];
  /** Resolves when `count` more were answered. */
  more(count: number): Promise<void>;
  /** Resolves when the last one has its answer. */
  stop(): Promise<void>;
}

/** Milliseconds between the answer and the next request of one caller: 300 a second of all. */
const PAUSE = 50;
const CALLERS = 15;

/**
 * @param requests made by all callers in turn; what one throws is a failure.
 */
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
      // Where everything fails, the count of failures tells; waiting would tell nothing.
      const patience = failures.length + count;
      while (answered < goal && failures.length < patience) await delay(10);
    },
    async stop() {
      isStopped = true;
      await Promise.all(callers);
    },
  };
}
