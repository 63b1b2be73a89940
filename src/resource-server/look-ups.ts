/** Equal look-ups at the same time ask the service once. */

export interface LookUps<Answer> {
  /** An answer that was asked for after this call, or together with it. */
  find(token: string): Promise<Answer>;
  /** Whoever waits for an answer that was asked for before gets a newer one. */
  forget(token: string): void;
  forgetAll(): void;
}

interface UnderWay {
  /** Something happened to the token since it was asked about. */
  isOutdated: boolean;
  readonly ended: Promise<void>;
}

/**
 * At most one request per token is under way. Those who come in the meantime share the next one:
 * the answer on its way may have been decided before a revocation that they come after.
 *
 * @param ask one request; `deadline` is in the time of `performance.now()`.
 * @param keep is told each answer that nothing has outdated.
 */
export function createLookUps<Answer>({
  ask,
  keep,
  timeoutMs,
}: {
  readonly ask: (token: string, deadline: number) => Promise<Answer>;
  readonly keep: (token: string, answer: Answer) => void;
  readonly timeoutMs: number;
}): LookUps<Answer> {
  const underWay = new Map<string, UnderWay>();
  const waiting = new Map<string, Promise<Answer>>();

  async function takeTurn(token: string): Promise<Answer> {
    const deadline = performance.now() + timeoutMs;
    // The one before began earlier, so its own deadline ends it before this one's.
    await underWay.get(token)?.ended;
    waiting.delete(token);
    let end = (): void => {};
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    const mine: UnderWay = { isOutdated: false, ended };
    underWay.set(token, mine);
    try {
      for (;;) {
        const answer = await ask(token, deadline);
        if (!mine.isOutdated) {
          keep(token, answer);
          return answer;
        }
        mine.isOutdated = false;
      }
    } finally {
      underWay.delete(token);
      end();
    }
  }

  return {
    find(token) {
      const joined = waiting.get(token) ?? takeTurn(token);
      waiting.set(token, joined);
      return joined;
    },
    forget(token) {
      const found = underWay.get(token);
      if (found) found.isOutdated = true;
    },
    forgetAll() {
      for (const found of underWay.values()) found.isOutdated = true;
    },
  };
}
