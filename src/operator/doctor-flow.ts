/** A whole authorization as a partner and a person go through it: every request real, each timed. */
import { createHash } from 'node:crypto';
import { randomId } from '../random-id.ts';
import { createBrowser, type DoctorPage, hasField, type SeenCookie } from './doctor-browser.ts';
import type { Findings } from './doctor-findings.ts';
import { BOGUS_ADDRESS } from './doctor-hops.ts';
import type { DoctorAnswer, Send } from './doctor-requests.ts';
import { described, type Trouble, troubleOnTheWay, unreachable } from './doctor-troubles.ts';

export interface Flow {
  readonly issuer: string;
  readonly send: Send;
  readonly person: { readonly email: string; readonly password: string };
  readonly client: { readonly id: string; readonly secret: string; readonly redirectUri: string };
  /** Seconds. */
  readonly retryWindow: number;
  readonly signal: AbortSignal;
}

export interface FlowOutcome {
  readonly cookies: readonly SeenCookie[];
  /** Whether the service began to ask, and so set cookies. */
  readonly hasBegun: boolean;
}

/** A step whose answer is not as it should be. */
class StepFailed extends Error {
  readonly trouble: Trouble;

  constructor(trouble: Trouble) {
    super(trouble.message);
    this.trouble = trouble;
  }
}

const ANOTHER =
  'another deployment answers there: compare DATABASE_URL and REDIS_URL of the nodes with those here';
const NODES_DIFFER =
  'give every node the same REDIS_URL, DATABASE_URL, GATEHOUSE_COOKIE_KEYS and GATEHOUSE_TOKEN_KEYS (`npm run operator -- keys` compares keys)';
const COOKIES_LOST =
  'let the proxy pass Cookie and Set-Cookie unchanged, cache nothing, and give every node the same GATEHOUSE_COOKIE_KEYS';
const REPEATED =
  'where it says “already used” the proxy sent the POST twice: it must never repeat one (nginx: no non_idempotent in proxy_next_upstream); else see that every node has the same stores and keys';

/** Each step is one finding; after the first that fails the others are not checked. */
export async function checkFlow(findings: Findings, flow: Flow): Promise<FlowOutcome> {
  const { issuer, send, signal } = flow;
  const forwarded = { 'x-forwarded-for': BOGUS_ADDRESS };
  const browser = createBrowser({ issuer, send, headers: forwarded });
  const state = randomId('', 22);
  const verifier = randomId('', 43);
  const challenge = createHash('sha256').update(verifier).digest('base64url');
  const tokens = { access: '', refresh: '', replaced: '' };
  let page: DoctorPage;
  let code = '';
  let hasBegun = false;

  /** Client authentication goes by header, which a proxy could keep for itself. */
  const post = (path: string, form: Readonly<Record<string, string>>): Promise<DoctorAnswer> => {
    const { id, secret } = flow.client;
    const authorization = `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}`;
    return send({ path, form, headers: { authorization } });
  };
  const keep = (answer: DoctorAnswer): void => {
    const { access_token: access, refresh_token: refresh } = answer.body;
    tokens.replaced = tokens.refresh;
    tokens.access = String(access);
    tokens.refresh = String(refresh);
  };
  const refreshWith = (token: string): Promise<DoctorAnswer> =>
    post('/oauth/token', { grant_type: 'refresh_token', refresh_token: token });

  const steps: readonly (readonly [check: string, run: () => Promise<string>])[] = [
    [
      'authorize',
      async () => {
        const query = new URLSearchParams({
          ...{ response_type: 'code', client_id: flow.client.id, state },
          ...{ redirect_uri: flow.client.redirectUri },
          ...{ code_challenge: challenge, code_challenge_method: 'S256' },
        });
        page = await browser.open(`/oauth/authorize?${query}`);
        hasBegun = hasField(page, 'password') || page.status === 410;
        // 410: the sign-in page did not get back the cookie that the step before had set.
        const remedy = page.status === 410 ? COOKIES_LOST : ANOTHER;
        demand(hasField(page, 'password'), page, 'GET /oauth/authorize', remedy);
        return 'an authorization request with PKCE and state leads to the sign-in page';
      },
    ],
    [
      'sign_in',
      async () => {
        page = await browser.submit(page, flow.person);
        const isSignedIn = hasField(page, 'decision') && !hasField(page, 'password');
        const remedy = page.status === 401 ? ANOTHER : COOKIES_LOST;
        demand(isSignedIn, page, 'the sign-in form', remedy);
        return 'the right password leads to the consent page';
      },
    ],
    [
      'consent',
      async () => {
        page = await browser.submit(page, { decision: 'approve' });
        const back = page.location;
        code = back?.searchParams.get('code') ?? '';
        const isOurs =
          back?.searchParams.get('state') === state && back.searchParams.get('iss') === issuer;
        const refused = back?.searchParams.get('error');
        demand(code !== '' && isOurs && !refused, page, 'the consent form', COOKIES_LOST);
        return 'approving it leads to the client, with a code, the state and the issuer';
      },
    ],
    [
      'exchange',
      async () => {
        const answer = await post('/oauth/token', {
          ...{ grant_type: 'authorization_code', code, redirect_uri: flow.client.redirectUri },
          code_verifier: verifier,
        });
        const remedy = answer.body.error === 'invalid_grant' ? REPEATED : HEADER_LOST;
        demand(hasTokens(answer), answer, 'POST /oauth/token (authorization_code)', remedy);
        keep(answer);
        return 'the code becomes an access token and a refresh token';
      },
    ],
    [
      'introspect',
      async () => {
        const answer = await post('/oauth/introspect', { token: tokens.access });
        demand(answer.body.active === true, answer, 'POST /oauth/introspect', NODES_DIFFER);
        return 'the access token is active';
      },
    ],
    [
      'refresh',
      async () => {
        const answer = await refreshWith(tokens.refresh);
        const isNew = hasTokens(answer) && answer.body.refresh_token !== tokens.refresh;
        demand(isNew, answer, 'POST /oauth/token (refresh_token)', REPEATED);
        keep(answer);
        return 'both tokens are replaced';
      },
    ],
    [
      'retry',
      async () => {
        if (flow.retryWindow === 0) return 'not tried: tokens.retry_window is 0s';
        const answer = await refreshWith(tokens.replaced);
        const isSame = hasTokens(answer) && answer.body.refresh_token === tokens.refresh;
        const what = 'POST /oauth/token (the refresh token before)';
        demand(isSame, answer, what, `${NODES_DIFFER}; their clocks must agree as well`);
        tokens.access = String(answer.body.access_token);
        return 'the refresh token before it answers with the same successor';
      },
    ],
    [
      'revoke',
      async () => {
        const answer = await post('/oauth/revoke', { token: tokens.refresh });
        demand(answer.status === 200, answer, 'POST /oauth/revoke', NODES_DIFFER);
        return 'the authorization is ended';
      },
    ],
    [
      'introspect_revoked',
      async () => {
        const answer = await post('/oauth/introspect', { token: tokens.access });
        demand(answer.body.active === false, answer, 'POST /oauth/introspect', NODES_DIFFER);
        return 'its access token is dead at once';
      },
    ],
    [
      'refresh_revoked',
      async () => {
        const answer = await refreshWith(tokens.refresh);
        const isRefused = answer.status === 400 && answer.body.error === 'invalid_grant';
        demand(isRefused, answer, 'POST /oauth/token (after the revocation)', NODES_DIFFER);
        return 'and so is its refresh token (invalid_grant)';
      },
    ],
    [
      'sign_out',
      async () => {
        page = await browser.submit(await browser.open('/logout'), {});
        page = await browser.open('/profile');
        demand(hasField(page, 'password'), page, 'the sign-out form', COOKIES_LOST);
        return 'afterwards the profile asks for the password';
      },
    ],
  ];

  for (const [index, [check, run]] of steps.entries()) {
    const began = performance.now();
    try {
      findings.ok(check, await run(), performance.now() - began);
    } catch (error) {
      signal.throwIfAborted();
      const trouble = error instanceof StepFailed ? error.trouble : unreachable(error);
      findings.problem({
        check,
        where: issuer,
        ...trouble,
        ms: Math.round(performance.now() - began),
      });
      const rest = steps.slice(index + 1).map(([name]) => name);
      findings.notChecked(rest, `the step before failed (${check.replaceAll('_', ' ')})`);
      break;
    }
  }
  return { cookies: browser.cookies, hasBegun };
}

const HEADER_LOST =
  'where the client is unknown another deployment answers; else the proxy keeps the Authorization header for itself: pass it on';

function hasTokens({ status, body }: DoctorAnswer): boolean {
  const { access_token: access, refresh_token: refresh } = body;
  return status === 200 && typeof access === 'string' && typeof refresh === 'string';
}

/** @param sent what the answer is to, without values. @throws StepFailed unless `isRight`. */
function demand(isRight: boolean, answer: DoctorAnswer, sent: string, remedy: string): void {
  if (isRight) return;
  throw new StepFailed(
    troubleOnTheWay(answer) ?? { message: `${sent} was answered ${described(answer)}`, remedy },
  );
}
