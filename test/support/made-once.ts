/** Results that are created once per process. */

/**
 * Calls `make` once and returns its result from then on. A failure is not cached: it rejects only
 * the calls that wait for it, so that it breaks one suite and not all later ones.
 */
export function madeOnce<Value>(make: () => Promise<Value>): () => Promise<Value> {
  let made: Promise<Value> | undefined;
  return () => {
    made ??= make().catch((error: unknown) => {
      made = undefined;
      throw error;
    });
    return made;
  };
}
