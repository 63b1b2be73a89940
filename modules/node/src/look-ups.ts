/** Combines simultaneous look-ups of the same token into one introspection. */

/**
 * At most one request per token is in flight. Look-ups that arrive before its answer share the next
 * request, because the answer in flight may not contain a revocation that happened before them.
 *
 * @param ask sends one request; `deadline` is in the time of `performance.now()`.
 */
export function createLookUps<Answer>(parts: {
  readonly ask: (token: string, deadline: number) => Promise<Answer>;
  readonly timeoutMs: number;
}) {
  const { ask, timeoutMs } = parts;
  const inProgress = new Map<string, Promise<void>>();
  const waiting = new Map<string, Promise<Answer>>();

  async function takeTurn(token: string): Promise<Answer> {
    const deadline = performance.now() + timeoutMs;
    // This wait needs no timeout: the previous request began earlier, so it ends before the deadline of this request.
    await inProgress.get(token);
    waiting.delete(token);
    let end = (): void => {};
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    inProgress.set(token, ended);
    try {
      return await ask(token, deadline);
    } finally {
      inProgress.delete(token);
      end();
    }
  }

  return {
    /** Returns the answer to a request that is sent after this call. */
    find(token: string): Promise<Answer> {
      const joined = waiting.get(token) ?? takeTurn(token);
      waiting.set(token, joined);
      return joined;
    },
  };
}
