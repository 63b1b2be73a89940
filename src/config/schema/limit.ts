/** What the settings file says of limits (rule: attempt-limits.ts). */
import { duration, wholeNumber } from './kinds.ts';

const attempts = (usual: number) => wholeNumber(1, 1_000_000).default(usual);
const owned = () => wholeNumber(0, 100_000).default(25);
const window = (usual: string) => duration('1s', '1d').prefault(usual);

export const limits = {
  clients_per_person: owned().describe(
    'OAuth clients one person may have on the profile page; 0 forbids new ones.',
  ),
  api_keys_per_person: owned().describe('API keys one person may have; 0 forbids new ones.'),
  sign_in_failures: attempts(10).describe(
    'Wrong passwords per account and address within the window, before a pause; as many again ' +
      'for each browser in which the account has signed in before.',
  ),
  sign_in_failures_per_address: attempts(100).describe(
    'Wrong passwords per address, whoever they are for, within the window. A browser in which ' +
      'the account has signed in before is not held up.',
  ),
  sign_in_failure_window: window('15m').describe(
    'The window in which sign_in_failures and sign_in_failures_per_address are counted.',
  ),
  sign_in_failures_per_account: attempts(100).describe(
    'Wrong passwords per account, from wherever they come, within sign_in_account_window. A ' +
      'browser in which the account has signed in before is not held up, and a one-time link ' +
      'lets the person in.',
  ),
  sign_in_account_window: window('1h').describe(
    'The window in which sign_in_failures_per_account are counted.',
  ),
  client_failures: attempts(50).describe(
    'Failed client authentications per client and address within the window; further ones are ' +
      'answered 429. A right secret is never refused.',
  ),
  client_failures_per_address: attempts(300).describe(
    'Failed client authentications, and wrong tokens and codes of who shows no secret, per ' +
      'address within the window, before 429. What is right is never refused.',
  ),
  client_failure_window: window('1m').describe(
    'The window in which client_failures and client_failures_per_address are counted.',
  ),
  waiting_sign_ins_per_address: attempts(500).describe(
    'Authorization requests per address, begun within ten minutes, that wait for a sign-in; further ' +
      'ones of who is not signed in are told to wait (429).',
  ),
};
