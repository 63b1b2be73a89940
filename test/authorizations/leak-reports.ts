/** Reports leaked values as a scanner does. */
import { type Answer, ask } from '../support/oauth.ts';

const SECRET = 'scanner-secret-of-the-tests-0123456789abcd';
export const LEAK_SENDERS = { leaks: [{ name: 'scanner', secret: SECRET }] };

export interface Reported {
  readonly token: string;
  readonly url?: string;
  readonly source?: string;
}

export const reportLeaks = ({ operatorsUrl }: { readonly operatorsUrl: string }, list: unknown): Promise<Answer> =>
  ask(new URL('/leaks', operatorsUrl), {
    method: 'POST',
    headers: { authorization: `Bearer ${SECRET}` },
    body: typeof list === 'string' ? list : JSON.stringify(list),
  });
