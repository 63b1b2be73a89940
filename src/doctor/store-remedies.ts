/** What to do about a store that cannot be used: the same as after a start that failed with it. */
import { troubleOf } from '../service/startup-errors.ts';
import { StorageUnavailable } from '../storage/storage-unavailable.ts';

export const remedyOf = (error: unknown): string =>
  troubleOf(error)?.remedy ??
  'check that the database is running, and that the URL, its account and its password are correct';

export function reasonOf(error: unknown): string {
  if (error instanceof StorageUnavailable) return error.reason;
  return error instanceof Error ? error.message : String(error);
}
