/** What the test of a client asks once it has a code, in order, and what should come of it. */
import { ENDPOINT } from '../provider/endpoints.ts';

/** The tokens of the answers so far; empty texts before the first. */
export interface HeldTokens {
  readonly accessToken: string;
  readonly refreshToken: string;
  /** The refresh token before the present one. */
  readonly replaced: string;
}

export const NO_TOKENS: HeldTokens = { accessToken: '', refreshToken: '', replaced: '' };

export interface PlannedAnswer {
  readonly status: number;
  /** Empty where the answer was no JSON object. */
  readonly body: Readonly<Record<string, unknown>>;
}

export interface PlannedRequest {
  readonly title: string;
  readonly path: string;
  /** Without the credentials of the client. */
  form(held: HeldTokens): Readonly<Record<string, string>>;
  /** Whether this is the answer there should be; `held` is from before it. */
  isExpected(answer: PlannedAnswer, held: HeldTokens): boolean;
  /** What the answer shows then. */
  readonly meaning: string;
}

/** @returns what is held after this answer; one without tokens changes nothing. */
export function holdTokens(held: HeldTokens, { body }: PlannedAnswer): HeldTokens {
  const { access_token: accessToken, refresh_token: refreshToken } = body;
  if (typeof accessToken !== 'string' || typeof refreshToken !== 'string') return held;
  const isNew = refreshToken !== held.refreshToken;
  return { accessToken, refreshToken, replaced: isNew ? held.refreshToken : held.replaced };
}

export function clientTestPlan({
  code,
  redirectUri,
  verifier,
  hasSecret,
  retryWindow,
}: {
  readonly code: string;
  readonly redirectUri: string;
  readonly verifier: string;
  readonly hasSecret: boolean;
  /** Seconds. */
  readonly retryWindow: number;
}): PlannedRequest[] {
  const exchange: PlannedRequest = {
    title: 'Exchange the code',
    path: ENDPOINT.token,
    form: () => ({
      grant_type: 'authorization_code',
      code,
      redirect_uri: redirectUri,
      code_verifier: verifier,
    }),
    isExpected: hasTokens,
    meaning: 'The code became an access token and a refresh token.',
  };
  const refresh: PlannedRequest = {
    title: 'Refresh',
    path: ENDPOINT.token,
    form: ({ refreshToken }) => refreshForm(refreshToken),
    isExpected: (answer, { refreshToken }) =>
      hasTokens(answer) && answer.body.refresh_token !== refreshToken,
    meaning: 'Both tokens are new. Store the refresh token of every answer.',
  };
  const replay: PlannedRequest = {
    title: 'Refresh with the old token again',
    path: ENDPOINT.token,
    form: ({ replaced }) => refreshForm(replaced),
    ...(retryWindow > 0 ? sameSuccessor(retryWindow) : REFUSED_REPLAY),
  };
  const revoke: PlannedRequest = {
    title: 'Revoke',
    path: ENDPOINT.revocation,
    form: ({ refreshToken }) => ({ token: refreshToken }),
    isExpected: ({ status }) => status === 200,
    meaning: 'The whole authorization is over.',
  };
  const rotation = [refresh, replay, revoke];
  // RFC 7662 §2.1: only a client that can prove who it is may ask about a token.
  return hasSecret ? [exchange, LIVE, ...rotation, DEAD] : [exchange, ...rotation];
}

const LIVE: PlannedRequest = {
  title: 'Ask about the token',
  path: ENDPOINT.introspection,
  form: ({ accessToken }) => ({ token: accessToken }),
  isExpected: ({ body }) => body.active === true,
  meaning:
    'It is active. A client is told no more of its own token; what the warehouse API is told stands at the end.',
};

const DEAD: PlannedRequest = {
  ...LIVE,
  title: 'Ask again',
  isExpected: ({ body }) => body.active === false,
  meaning: 'The access token is dead at once, not when it expires.',
};

const sameSuccessor = (seconds: number): Pick<PlannedRequest, 'isExpected' | 'meaning'> => ({
  isExpected: (answer, { refreshToken }) =>
    hasTokens(answer) && answer.body.refresh_token === refreshToken,
  meaning: `The same new refresh token as before. For ${seconds} seconds a lost answer, or two workers at once, do no harm; after that it is a replay and ends the authorization.`,
});

const REFUSED_REPLAY: Pick<PlannedRequest, 'isExpected' | 'meaning'> = {
  isExpected: ({ status, body }) => status === 400 && body.error === 'invalid_grant',
  meaning: 'Refused, and everything is revoked: the operator of this service allows no retry.',
};

const refreshForm = (refreshToken: string) => ({
  grant_type: 'refresh_token',
  refresh_token: refreshToken,
});

const hasTokens = ({ status, body }: PlannedAnswer): boolean =>
  status === 200 && typeof body.access_token === 'string' && typeof body.refresh_token === 'string';
