/** Recent problems of a client in the words of its page, what was sent held against what is registered. */
import {
  type ClientProblem,
  type SeenAuthMethod,
  withoutValues,
} from '../../clients/client-problems.ts';
import {
  isDifferent,
  redirectUriDifference,
  type Stretch,
} from '../../clients/redirect-uri-difference.ts';
import { isDocumentedError } from '../error-reference/error-reference.ts';
import { momentOf } from '../moment.ts';
import type { ClientProblemRow, SentRedirectUri } from './view.ts';

const STEPS = { authorize: 'Authorize', token: 'Token' } as const;

const AUTH_METHODS: Readonly<Record<SeenAuthMethod, string>> = {
  basic: 'Basic header',
  body: 'client_secret in the body',
  both: 'Basic header and client_secret in the body',
  none: 'no client secret',
};

export function problemRowsOf(
  problems: readonly ClientProblem[],
  redirectUris: readonly string[],
): ClientProblemRow[] {
  // Those that were sent have lost the values of their query, too.
  const registered = redirectUris.map(withoutValues);
  return problems.map((problem) => ({
    at: momentOf(problem.at),
    step: STEPS[problem.step],
    error: problem.error,
    errorUrl: isDocumentedError(problem.error) ? `/errors/${problem.error}` : undefined,
    cause: problem.cause,
    authMethod: problem.authMethod && AUTH_METHODS[problem.authMethod],
    scope: problem.scope,
    redirectUri: redirectUriOf(problem, registered),
    requestId: problem.requestId,
  }));
}

function redirectUriOf(
  { redirectUri, step, error, cause }: ClientProblem,
  registered: readonly string[],
): SentRedirectUri | undefined {
  if (redirectUri === undefined) return undefined;
  const isTheCause = error === 'invalid_redirect_uri' || /redirect_uri/.test(cause);
  if (step === 'token' && !isTheCause) return undefined;
  const difference = isTheCause ? redirectUriDifference(redirectUri, registered) : undefined;
  if (difference) {
    return {
      sent: difference.map((part) => ({ text: part.sent, isMarked: isDifferent(part) })),
      nearest: difference.map((part) => ({ text: part.registered, isMarked: isDifferent(part) })),
      differences: difference.filter(isDifferent).map(inWords),
    };
  }
  const isHidden = error === 'invalid_redirect_uri' && registered.includes(redirectUri);
  return {
    sent: [{ text: redirectUri, isMarked: false }],
    nearest: undefined,
    differences: isHidden ? ['It differs in a value of its query, or was registered since.'] : [],
  };
}

function inWords({ sent, registered }: Stretch): string {
  if (sent === '') return `“${registered}” is missing.`;
  if (registered === '') return `“${sent}” should not be there.`;
  return `“${sent}” was sent instead of “${registered}”.`;
}
