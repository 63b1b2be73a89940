/** How the suites of clients and accounts look at what was refused. */
import { Refusal } from '../../src/base/refusal.ts';

/** The code of the refusal, or what happened instead. */
export async function refusalOf(work: Promise<unknown>): Promise<string> {
  return work.then(
    () => 'accepted',
    (error: unknown) => (error instanceof Refusal ? error.code : `failed: ${error}`),
  );
}
