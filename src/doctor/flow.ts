/** A whole authorization, as for a partner and a user: real requests, each one timed. */
import { BOGUS_ADDRESS } from '../base/network-address.ts';
import { randomId } from '../base/random-id.ts';
import { authorizationRequest, type Held, STEPS, type StepName, take } from '../provider/client-flow.ts';
import { ENDPOINT } from '../provider/endpoints.ts';
import { createBrowser, type DoctorBrowser, type DoctorPage, hasField, type SeenCookie } from './browser.ts';
import { described, explainConnectionError, type Trouble, troubled, unreachable } from './connection-errors.ts';
import { type Findings, ok } from './findings.ts';
import type { DoctorAnswer, Send } from './requests.ts';

export interface Flow {
  readonly issuer: string;
  readonly send: Send;
  /** Signs in with a password, or with the path of a one-time link if there are no passwords. */
  readonly person: { readonly email: string; readonly password: string } | { readonly linkPath: string };
  readonly client: { readonly id: string; readonly secret: string; readonly redirectUri: string };
  readonly retryWindowSeconds: number;
  readonly signal: AbortSignal;
}

export interface FlowOutcome {
  readonly cookies: readonly SeenCookie[];
  /** True if the service started the sign-in, so that it has set cookies. */
  readonly hasStarted: boolean;
  /** True if client authentication passes the proxy, and this deployment answers. */
  readonly isClientAccepted: boolean;
}

/** Thrown if the answer to a step is not the expected one. */
class StepFailed extends Error {
  readonly trouble: Trouble;

  constructor(trouble: Trouble) {
    super(trouble.message);
    this.trouble = trouble;
  }
}

const ANOTHER =
  'another deployment answers at this address: compare DATABASE_URL and REDIS_URL of the ' +
  'nodes with those of the doctor';
const NODES_DIFFER =
  'give every node the same REDIS_URL, DATABASE_URL, GATEHOUSE_COOKIE_KEYS and GATEHOUSE_TOKEN_KEYS (`gatehouse keys` compares keys)';
const CLOCKS_DIFFER = `${NODES_DIFFER}; their clocks must agree, too`;
const COOKIES_LOST =
  'make the proxy pass Cookie and Set-Cookie on unchanged, cache nothing, and give every ' +
  'node the same GATEHOUSE_COOKIE_KEYS';
const HEADER_LOST =
  'if the client is unknown, another deployment answers; otherwise the proxy removes the ' +
  'Authorization header: pass it on';
const REPEATED =
  'if the answer says “already used”, the proxy sent the POST twice: it must never repeat one (nginx: no ' +
  'non_idempotent in proxy_next_upstream); otherwise check that every node has the same stores and keys';

type Check = readonly [name: string, run: () => Promise<string>];

/** Values that the steps of the browser produce for the steps of the client. */
interface Journey {
  readonly state: string;
  held: Held;
  hasStarted: boolean;
  isClientAccepted: boolean;
}

/** Reports each step as one finding; after the first failure the next steps are not checked. */
export async function checkFlow(findings: Findings, flow: Flow): Promise<FlowOutcome> {
  const { issuer, send, signal } = flow;
  const headers = { 'x-forwarded-for': BOGUS_ADDRESS };
  const browser = createBrowser({ issuer, send, headers });
  const { redirectUri } = flow.client;
  const journey: Journey = {
    state: randomId('', 22),
    held: { code: '', redirectUri, verifier: randomId('', 43) },
    hasStarted: false,
    isClientAccepted: false,
  };
  const checks = [...approval(browser, flow, journey), ...tokensLife(flow, journey), signOut(browser)];
  for (const [index, [check, run]] of checks.entries()) {
    const began = performance.now();
    try {
      findings.add(check, issuer, ok(await run(), performance.now() - began));
    } catch (error) {
      signal.throwIfAborted();
      const trouble = error instanceof StepFailed ? error.trouble : unreachable(error);
      findings.add(check, issuer, { ...troubled(trouble), ms: performance.now() - began });
      const rest = checks.slice(index + 1).map(([name]) => name);
      findings.notChecked(rest, `the previous step failed (${check.replaceAll('_', ' ')})`);
      break;
    }
  }
  const { hasStarted, isClientAccepted } = journey;
  return { cookies: browser.cookies, hasStarted, isClientAccepted };
}

/** The steps of the user, from the authorization request to the code. */
function approval(browser: DoctorBrowser, flow: Flow, journey: Journey): Check[] {
  let page: DoctorPage;
  let isSignedIn = false;

  async function authorize(): Promise<string> {
    const { state, held } = journey;
    const query = authorizationRequest({ ...held, clientId: flow.client.id, state });
    page = await browser.open(`${ENDPOINT.authorization}?${query}`);
    if (isSignedIn) {
      require(hasField(page, 'decision'), page, `GET ${ENDPOINT.authorization}`, COOKIES_LOST);
      return 'an authorization request with PKCE and state leads to the consent page';
    }
    journey.hasStarted = hasField(page, 'password') || page.status === 410;
    // 410: the browser did not return the cookie that the previous step had set.
    const remedy = page.status === 410 ? COOKIES_LOST : ANOTHER;
    require(hasField(page, 'password'), page, `GET ${ENDPOINT.authorization}`, remedy);
    return 'an authorization request with PKCE and state leads to the sign-in page';
  }

  async function signIn(): Promise<string> {
    if ('linkPath' in flow.person) return signInByLink(flow.person.linkPath);
    page = await browser.submit(page, flow.person);
    const isRight = hasField(page, 'decision') && !hasField(page, 'password');
    const remedy = page.status === 401 ? ANOTHER : COOKIES_LOST;
    require(isRight, page, 'the sign-in form', remedy);
    return 'the correct password leads to the consent page';
  }

  async function signInByLink(path: string): Promise<string> {
    page = await browser.open(path);
    journey.hasStarted = hasField(page, 'token');
    // 410: the browser did not return the cookie that the redirect had set.
    const remedy = page.status === 410 ? COOKIES_LOST : ANOTHER;
    require(journey.hasStarted, page, 'GET /password', remedy);
    page = await browser.submit(page, {
      token: new URL(path, flow.issuer).searchParams.get('token') ?? '',
    });
    isSignedIn = page.status === 200 && /^\/profile/.test(page.path);
    require(isSignedIn, page, 'the form of a one-time link', COOKIES_LOST);
    return 'a one-time link signs in (passwords are off, and a provider would need a person)';
  }

  async function consent(): Promise<string> {
    page = await browser.submit(page, { decision: 'approve' });
    const answer = page.location?.searchParams;
    const code = answer?.get('code') ?? '';
    const isOurs = answer?.get('state') === journey.state && answer.get('iss') === flow.issuer;
    const isRefused = Boolean(answer?.get('error'));
    require(code !== '' && isOurs && !isRefused, page, 'the consent form', COOKIES_LOST);
    journey.held = { ...journey.held, code };
    return 'approval leads back to the client, with a code, the state and the issuer';
  }

  const steps: readonly Check[] = [
    ['authorize', authorize],
    ['sign_in', signIn],
  ];
  // A link does not resume a waiting authorization, so sign in first.
  return [...('linkPath' in flow.person ? steps.toReversed() : steps), ['consent', consent]];
}

/** Each step, with what the expected answer proves, and the remedy for any other answer. */
const CLIENT_STEPS: readonly (readonly [name: StepName, shows: string, remedy: string])[] = [
  ['exchange', 'the code is exchanged for an access token and a refresh token', REPEATED],
  ['introspect', 'the access token is active', NODES_DIFFER],
  ['refresh', 'both tokens are replaced', REPEATED],
  ['retry', 'the previous refresh token returns the same successor', CLOCKS_DIFFER],
  ['revoke', 'the authorization is ended', NODES_DIFFER],
  ['introspect_revoked', 'the access token of the ended authorization is inactive at once', NODES_DIFFER],
  ['refresh_revoked', 'the refresh token of the ended authorization is refused (invalid_grant)', NODES_DIFFER],
];

/** The steps of the client, from the code to the end of all tokens. */
function tokensLife({ client, retryWindowSeconds, send }: Flow, journey: Journey): Check[] {
  /** Authenticates with the header, because a proxy may withhold that header. */
  const authorization = `Basic ${Buffer.from(`${client.id}:${client.secret}`).toString('base64')}`;
  const post = (path: string, form: Readonly<Record<string, string>>): Promise<DoctorAnswer> =>
    send({ path, form, headers: { authorization } });

  return CLIENT_STEPS.map(([name, shows, remedy]) => [
    name,
    async () => {
      if (name === 'retry' && retryWindowSeconds === 0) return 'not tested: tokens.retry_window is 0s';
      const { answer, isExpected, held } = await take(name, journey.held, post);
      const isUnknown = name === 'exchange' && answer.body.error !== 'invalid_grant';
      const sent = `POST ${STEPS[name].path} (${name.replaceAll('_', ' ')})`;
      require(isExpected, answer, sent, isUnknown ? HEADER_LOST : remedy);
      journey.held = held;
      journey.isClientAccepted = true;
      return shows;
    },
  ]);
}

function signOut(browser: DoctorBrowser): Check {
  async function run(): Promise<string> {
    await browser.submit(await browser.open('/logout'), {});
    const page = await browser.open('/profile');
    // If the service has no passwords, this may redirect to a provider at once.
    require(!/^\/profile/.test(page.path), page, 'the sign-out form', COOKIES_LOST);
    return 'after the sign-out the profile page asks for a sign-in';
  }
  return ['sign_out', run];
}

/** @param sent describes the request, without values. @throws StepFailed unless `isRight` */
function require(isRight: boolean, answer: DoctorAnswer, sent: string, remedy: string): void {
  if (isRight) return;
  throw new StepFailed(
    explainConnectionError(answer) ?? {
      message: `${sent} was answered ${described(answer)}`,
      remedy,
    },
  );
}
