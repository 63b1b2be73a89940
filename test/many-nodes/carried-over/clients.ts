/** Registers clients with the operator command. */
import { type RunOperator, valueFrom } from '../../operator/run-operator.ts';
import type { TestClient } from '../../support/oauth.ts';
import { REDIRECT_URI } from '../../support/seed.ts';

export async function addClient(
  operator: RunOperator,
  kind: 'confidential' | 'public' | 'machine' | 'resource-server',
  name: string,
  options: readonly string[] = [],
): Promise<TestClient> {
  const redirects = kind === 'confidential' || kind === 'public';
  const add = ['clients', 'add', '--kind', kind, '--name', name, ...options];
  if (redirects) add.push('--redirect-uri', REDIRECT_URI);
  const { client_id: id, client_secret: secret } = await valueFrom(operator, add);
  return { id, redirectUri: REDIRECT_URI, ...(secret && { secret }) };
}
