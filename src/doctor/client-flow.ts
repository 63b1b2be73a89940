/** The requests of a client in the code flow: the authorization request, then those with its code and tokens. */
import { createHash } from 'node:crypto';
import { ENDPOINT } from '../provider/endpoints.ts';

export const authorizationRequest = ({
  clientId,
  redirectUri,
  state,
  verifier,
}: Pick<Held, 'redirectUri' | 'verifier'> & {
  readonly clientId: string;
  readonly state: string;
}): URLSearchParams =>
  new URLSearchParams({
    response_type: 'code',
    client_id: clientId,
    redirect_uri: redirectUri,
    state,
    // RFC 7636 §4.2.
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
  });

export interface Held {
  readonly code: string;
  readonly redirectUri: string;
  readonly verifier: string;
  /** The access token of the latest response; absent before the first response. */
  readonly accessToken?: string;
  readonly refreshToken?: string;
  readonly replaced?: string;
}

interface FlowAnswer {
  readonly status: number;
  /** Empty if the answer was not a JSON object. */
  readonly body: Readonly<Record<string, unknown>>;
}

type Form = Readonly<Record<string, string>>;

interface Step {
  readonly path: string;
  /** Returns the form without the client's credentials. */
  form(held: Held): Form;
  /** @param held the code and tokens that the client had before the step */
  isExpected(answer: FlowAnswer, held: Held): boolean;
}

export type StepName = keyof typeof STEPS;

/** The steps in their order. Skip `retry` if the service has no retry window: `retry` would then be a replay. */
export const STEPS = {
  exchange: {
    path: ENDPOINT.token,
    form: ({ code, redirectUri, verifier }: Held) => ({
      grant_type: 'authorization_code',
      code,
      redirect_uri: redirectUri,
      code_verifier: verifier,
    }),
    isExpected: hasTokens,
  },
  introspect: introspection(true),
  refresh: refresh('refreshToken', (answer, held) => hasTokens(answer) && !isSame(answer, held)),
  retry: refresh('replaced', (answer, held) => hasTokens(answer) && isSame(answer, held)),
  revoke: {
    path: ENDPOINT.revocation,
    form: ({ refreshToken = '' }: Held) => ({ token: refreshToken }),
    isExpected: ({ status }: FlowAnswer) => status === 200,
  },
  introspect_revoked: introspection(false),
  refresh_revoked: refresh('refreshToken', ({ status, body }) => status === 400 && body.error === 'invalid_grant'),
} satisfies Readonly<Record<string, Step>>;

/** `post` adds the client's credentials. If the answer has no tokens, the returned `held` equals the given `held`. */
export async function take<Answer extends FlowAnswer>(
  name: StepName,
  held: Held,
  post: (path: string, form: Form) => Promise<Answer>,
): Promise<{ readonly answer: Answer; readonly isExpected: boolean; readonly held: Held }> {
  const { path, form, isExpected }: Step = STEPS[name];
  const answer = await post(path, form(held));
  return { answer, isExpected: isExpected(answer, held), held: holdTokens(held, answer) };
}

function holdTokens(held: Held, { body }: FlowAnswer): Held {
  const { access_token: accessToken, refresh_token: refreshToken } = body;
  if (typeof accessToken !== 'string' || typeof refreshToken !== 'string') return held;
  const replaced = refreshToken === held.refreshToken ? held.replaced : held.refreshToken;
  return { ...held, accessToken, refreshToken, ...(replaced && { replaced }) };
}

function introspection(isActive: boolean): Step {
  return {
    path: ENDPOINT.introspection,
    form: ({ accessToken = '' }) => ({ token: accessToken }),
    isExpected: ({ body }) => body.active === isActive,
  };
}

function refresh(which: 'refreshToken' | 'replaced', isExpected: Step['isExpected']): Step {
  const form = (held: Held) => ({ grant_type: 'refresh_token', refresh_token: held[which] ?? '' });
  return { path: ENDPOINT.token, form, isExpected };
}

function hasTokens({ status, body }: FlowAnswer): boolean {
  const { access_token: access, refresh_token: refresh } = body;
  return status === 200 && typeof access === 'string' && typeof refresh === 'string';
}

function isSame({ body }: FlowAnswer, { refreshToken }: Held): boolean {
  return body.refresh_token === refreshToken;
}
