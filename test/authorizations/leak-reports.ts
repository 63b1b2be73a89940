/** Reports leaked values as a scanner does. */
import { type Answer, ask } from '../support/oauth.ts';

export const LEAKS_SECRET = 'scanner-secret-of-the-tests-0123456789abcd';
export const LEAK_SENDERS = { leaks: [{ name: 'scanner', secret: LEAKS_SECRET }] };

export interface Reported {
  readonly token: string;
  readonly url?: string;
  readonly source?: string;
}

export const reportLeaks = (
  { operatorsUrl }: { readonly operatorsUrl: string },
  list: unknown,
  { secret = LEAKS_SECRET }: { secret?: string } = {},
): Promise<Answer> =>
  ask(new URL('/leaks', operatorsUrl), {
    method: 'POST',
    headers: { authorization: `Bearer ${secret}` },
    body: typeof list === 'string' ? list : JSON.stringify(list),
  });
