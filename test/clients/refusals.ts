/** Returns the outcome of work that may be refused, for the tests of clients and accounts. */
import { Refusal } from '../../src/base/refusal.ts';

/** Returns the code of the refusal, or another outcome if the work was not refused. */
export async function refusalOf(work: Promise<unknown>): Promise<string> {
  return work.then(
    () => 'accepted',
    (error: unknown) => (error instanceof Refusal ? error.code : `failed: ${error}`),
  );
}
