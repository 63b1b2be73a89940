/** The registry of accounts with an engine of its own, for tests without a service. */
import { createAccounts as createOnEngine } from '../../src/changes/accounts.ts';
import { createChanges } from '../../src/changes/engine.ts';
import { TIMEOUT_FACTOR } from './timeout-factor.ts';

type Parts = Omit<Parameters<typeof createOnEngine>[0], 'engine'>;

export const createAccounts = (parts: Parts) =>
  createOnEngine({ ...parts, engine: createChanges({ ...parts, timeoutFactor: TIMEOUT_FACTOR }) });
