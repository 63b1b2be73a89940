/** A whole authorization, as a partner and a user go through it: real requests, each timed. */
import { BOGUS_ADDRESS } from '../base/network-address.ts';
import { randomId } from '../base/random-id.ts';
import {
  authorizationRequest,
  type Held,
  STEPS,
  type StepName,
  take,
} from '../provider/client-flow.ts';
import { ENDPOINT } from '../provider/endpoints.ts';
import {
  createBrowser,
  type DoctorBrowser,
  type DoctorPage,
  hasField,
  type SeenCookie,
} from './browser.ts';
import { type Findings, ok } from './findings.ts';
import type { DoctorAnswer, Send } from './requests.ts';
import { described, type Trouble, troubled, troubleOnTheWay, unreachable } from './troubles.ts';

export interface Flow {
  readonly issuer: string;
  readonly send: Send;
  /** Signs in with a password, or with the path of a one-time link if there are no passwords. */
  readonly person:
    | { readonly email: string; readonly password: string }
    | { readonly linkPath: string };
  readonly client: { readonly id: string; readonly secret: string; readonly redirectUri: string };
  readonly retryWindowSeconds: number;
  readonly signal: AbortSignal;
}

export interface FlowOutcome {
  readonly cookies: readonly SeenCookie[];
  /** True if the service began the sign-in, and so has set cookies. */
  readonly hasBegun: boolean;
  /** True if client authentication arrives, and this deployment answers. */
  readonly isClientAccepted: boolean;
}

/** A step was not answered as expected. */
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
  'give every node the same REDIS_URL, DATABASE_URL, GATEHOUSE_COOKIE_KEYS and GATEHOUSE_TOKEN_KEYS (`gatehouse keys` compares keys)';
const CLOCKS_DIFFER = `${NODES_DIFFER}; their clocks must agree as well`;
const COOKIES_LOST =
  'let the proxy pass Cookie and Set-Cookie unchanged, cache nothing, and give every node the same GATEHOUSE_COOKIE_KEYS';
const HEADER_LOST =
  'where the client is unknown another deployment answers; else the proxy keeps the Authorization header for itself: pass it on';
const REPEATED =
  'where it says “already used” the proxy sent the POST twice: it must never repeat one (nginx: no non_idempotent in proxy_next_upstream); else see that every node has the same stores and keys';

type Check = readonly [name: string, run: () => Promise<string>];

/** What the steps of the browser pass on to those of the client. */
interface Journey {
  readonly state: string;
  held: Held;
  hasBegun: boolean;
  isClientAccepted: boolean;
}

/** Reports each step as one finding; after the first failure the others are not checked. */
export async function checkFlow(findings: Findings, flow: Flow): Promise<FlowOutcome> {
  const { issuer, send, signal } = flow;
  const headers = { 'x-forwarded-for': BOGUS_ADDRESS };
  const browser = createBrowser({ issuer, send, headers });
  const { redirectUri } = flow.client;
  const journey: Journey = {
    state: randomId('', 22),
    held: { code: '', redirectUri, verifier: randomId('', 43) },
    hasBegun: false,
    isClientAccepted: false,
  };
  const checks = [
    ...approval(browser, flow, journey),
    ...tokensLife(flow, journey),
    signOut(browser),
  ];
  for (const [index, [check, run]] of checks.entries()) {
    const began = performance.now();
    try {
      findings.add(check, issuer, ok(await run(), performance.now() - began));
    } catch (error) {
      signal.throwIfAborted();
      const trouble = error instanceof StepFailed ? error.trouble : unreachable(error);
      findings.add(check, issuer, { ...troubled(trouble), ms: performance.now() - began });
      const rest = checks.slice(index + 1).map(([name]) => name);
      findings.notChecked(rest, `the step before failed (${check.replaceAll('_', ' ')})`);
      break;
    }
  }
  const { hasBegun, isClientAccepted } = journey;
  return { cookies: browser.cookies, hasBegun, isClientAccepted };
}

/** The user's part, from the request to the code. */
function approval(browser: DoctorBrowser, flow: Flow, journey: Journey): Check[] {
  let page: DoctorPage;
  let isSignedIn = false;

  async function authorize(): Promise<string> {
    const { state, held } = journey;
    const query = authorizationRequest({ ...held, clientId: flow.client.id, state });
    page = await browser.open(`${ENDPOINT.authorization}?${query}`);
    if (isSignedIn) {
      demand(hasField(page, 'decision'), page, `GET ${ENDPOINT.authorization}`, COOKIES_LOST);
      return 'an authorization request with PKCE and state leads to the consent page';
    }
    journey.hasBegun = hasField(page, 'password') || page.status === 410;
    // 410: the sign-in page did not get back the cookie that the step before had set.
    const remedy = page.status === 410 ? COOKIES_LOST : ANOTHER;
    demand(hasField(page, 'password'), page, `GET ${ENDPOINT.authorization}`, remedy);
    return 'an authorization request with PKCE and state leads to the sign-in page';
  }

  async function signIn(): Promise<string> {
    if ('linkPath' in flow.person) return signInByLink(flow.person.linkPath);
    page = await browser.submit(page, flow.person);
    const isRight = hasField(page, 'decision') && !hasField(page, 'password');
    const remedy = page.status === 401 ? ANOTHER : COOKIES_LOST;
    demand(isRight, page, 'the sign-in form', remedy);
    return 'the right password leads to the consent page';
  }

  async function signInByLink(path: string): Promise<string> {
    page = await browser.open(path);
    journey.hasBegun = hasField(page, 'token');
    // 410: the cookie that the redirect had set did not come back.
    const remedy = page.status === 410 ? COOKIES_LOST : ANOTHER;
    demand(journey.hasBegun, page, 'GET /password', remedy);
    page = await browser.submit(page, {
      token: new URL(path, flow.issuer).searchParams.get('token') ?? '',
    });
    isSignedIn = page.status === 200 && /^\/profile/.test(page.path);
    demand(isSignedIn, page, 'the form of a one-time link', COOKIES_LOST);
    return 'a one-time link signs in (nobody has a password here, and a provider asks people)';
  }

  async function consent(): Promise<string> {
    page = await browser.submit(page, { decision: 'approve' });
    const answer = page.location?.searchParams;
    const code = answer?.get('code') ?? '';
    const isOurs = answer?.get('state') === journey.state && answer.get('iss') === flow.issuer;
    const isRefused = Boolean(answer?.get('error'));
    demand(code !== '' && isOurs && !isRefused, page, 'the consent form', COOKIES_LOST);
    journey.held = { ...journey.held, code };
    return 'approving it leads to the client, with a code, the state and the issuer';
  }

  const steps: readonly Check[] = [
    ['authorize', authorize],
    ['sign_in', signIn],
  ];
  // A link does not resume a waiting authorization, so sign in first.
  return [...('linkPath' in flow.person ? steps.toReversed() : steps), ['consent', consent]];
}

/** Each step with what a right answer proves, and the remedy for another one. */
const CLIENT_STEPS: readonly (readonly [name: StepName, shows: string, remedy: string])[] = [
  ['exchange', 'the code becomes an access token and a refresh token', REPEATED],
  ['introspect', 'the access token is active', NODES_DIFFER],
  ['refresh', 'both tokens are replaced', REPEATED],
  ['retry', 'the refresh token before it answers with the same successor', CLOCKS_DIFFER],
  ['revoke', 'the authorization is ended', NODES_DIFFER],
  ['introspect_revoked', 'its access token is dead at once', NODES_DIFFER],
  ['refresh_revoked', 'and so is its refresh token (invalid_grant)', NODES_DIFFER],
];

/** The client's part, from the code to the end of all tokens. */
function tokensLife({ client, retryWindowSeconds, send }: Flow, journey: Journey): Check[] {
  /** Authenticates by header, because that is what a proxy could withhold. */
  const authorization = `Basic ${Buffer.from(`${client.id}:${client.secret}`).toString('base64')}`;
  const post = (path: string, form: Readonly<Record<string, string>>): Promise<DoctorAnswer> =>
    send({ path, form, headers: { authorization } });

  return CLIENT_STEPS.map(([name, shows, remedy]) => [
    name,
    async () => {
      if (name === 'retry' && retryWindowSeconds === 0)
        return 'not tried: tokens.retry_window is 0s';
      const { answer, isExpected, held } = await take(name, journey.held, post);
      const isUnknown = name === 'exchange' && answer.body.error !== 'invalid_grant';
      const sent = `POST ${STEPS[name].path} (${name.replaceAll('_', ' ')})`;
      demand(isExpected, answer, sent, isUnknown ? HEADER_LOST : remedy);
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
    // Without passwords, this may redirect to a provider at once.
    demand(!/^\/profile/.test(page.path), page, 'the sign-out form', COOKIES_LOST);
    return 'afterwards the profile asks for a sign-in';
  }
  return ['sign_out', run];
}

/** @param sent describes the request, without values. @throws StepFailed unless `isRight` */
function demand(isRight: boolean, answer: DoctorAnswer, sent: string, remedy: string): void {
  if (isRight) return;
  throw new StepFailed(
    troubleOnTheWay(answer) ?? { message: `${sent} was answered ${described(answer)}`, remedy },
  );
}
