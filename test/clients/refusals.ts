/** Returns the outcome of work that may be refused, for the tests of clients and accounts. */
import { expect } from 'chai';
import { Refusal } from '../../src/base/refusal.ts';

/** Expects that a refusal says what is wrong, and what to do. */
export function expectExplained({ code, message, remedy }: Partial<Refusal>): void {
  for (const text of [code, message, remedy]) expect(text, `${code}: ${message}`).to.be.a('string').that.matches(/\w/);
}

/** Returns the code of the refusal, or another outcome if the work was not refused. */
export async function refusalOf(work: Promise<unknown>): Promise<string> {
  return work.then(
    () => 'accepted',
    (error: unknown) => {
      if (error instanceof Refusal) expectExplained(error);
      return error instanceof Refusal ? error.code : `failed: ${error}`;
    },
  );
}
