/** What a process makes once for all who ask. */

/**
 * Asks `make` at the first call and answers its result from then on. A failure is told to those who
 * waited for it and then forgotten, so that it costs one suite and not all that follow.
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
