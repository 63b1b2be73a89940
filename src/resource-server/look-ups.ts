/** Equal look-ups at the same time ask the service once. */

/**
 * At most one request per token is under way. Those who come in the meantime share the next one:
 * the answer on its way may have been decided before a revocation that they come after.
 *
 * @param ask one request; `deadline` is in the time of `performance.now()`.
 */
export function createLookUps<Answer>(parts: {
  readonly ask: (token: string, deadline: number) => Promise<Answer>;
  readonly timeoutMs: number;
}) {
  const { ask, timeoutMs } = parts;
  const underWay = new Map<string, Promise<void>>();
  const waiting = new Map<string, Promise<Answer>>();

  async function takeTurn(token: string): Promise<Answer> {
    const deadline = performance.now() + timeoutMs;
    // The one before began earlier, so its own deadline ends it before this one's.
    await underWay.get(token);
    waiting.delete(token);
    let end = (): void => {};
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    underWay.set(token, ended);
    try {
      return await ask(token, deadline);
    } finally {
      underWay.delete(token);
      end();
    }
  }

  return {
    /** An answer that was asked for after this call, or together with it. */
    find(token: string): Promise<Answer> {
      const joined = waiting.get(token) ?? takeTurn(token);
      waiting.set(token, joined);
      return joined;
    },
  };
}
