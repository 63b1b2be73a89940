/** How the suites of clients and accounts look at what was refused, and wait for what was told. */
import { setTimeout as delay } from 'node:timers/promises';
import { Refusal } from '../../src/refusal.ts';

/** The code of the refusal, or what happened instead. */
export async function refusalOf(work: Promise<unknown>): Promise<string> {
  return work.then(
    () => 'accepted',
    (error: unknown) => (error instanceof Refusal ? error.code : `failed: ${error}`),
  );
}

/** Waits until a notification has arrived; the limit of the test ends it otherwise. */
export async function eventually(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await delay(5);
}
