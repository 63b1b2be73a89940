/** Why the service did not start, in words for whoever starts it. */
import { ConfigurationProblems } from './config/problems.ts';
import { Refusal } from './refusal.ts';

export function explained(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  // What clients are told of a store that is away names neither the store nor the cause.
  if ('reason' in error) {
    return `a store does not answer (${error.reason}): see that it runs and that its URL is right`;
  }
  if (error instanceof Refusal) return `${error.message}: ${error.remedy}`;
  // Each of these says by itself what is wrong and what to do; a trace would bury it.
  const isExplained = error instanceof ConfigurationProblems || 'code' in error;
  return isExplained ? error.message : String(error.stack);
}
