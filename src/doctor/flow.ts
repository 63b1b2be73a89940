/** A whole authorization, as for a partner and a user: real requests, each one timed. */
import { BOGUS_ADDRESS } from '../base/network-address.ts';
import { randomId } from '../base/random-id.ts';
import { authorizationRequest, type Held, STEPS, type StepName, take } from '../provider/client-flow.ts';
import { ENDPOINT } from '../provider/endpoints.ts';
import { cookiesVerdict, createBrowser, type DoctorPage, hasField } from './browser.ts';
import { type Check, check, PUBLIC } from './check.ts';
import {
  described,
  explainConnectionError,
  PROXY_HELP,
  type Trouble,
  troubled,
  unreachable,
} from './connection-errors.ts';
import { notChecked, ok, type Verdict } from './findings.ts';
import type { DoctorAnswer, Send } from './requests.ts';
import type { Visitor } from './visitor.ts';

/** Thrown if the answer to a step is not the expected one. */
class StepFailed extends Error {
  readonly trouble: Trouble;

  constructor(trouble: Trouble) {
    super(trouble.message);
    this.trouble = trouble;
  }
}

const ANOTHER =
  'another deployment answers at this address: compare DATABASE_URL and REDIS_URL of the nodes with those of the doctor';
const NODES_DIFFER =
  'give every node the same REDIS_URL, DATABASE_URL, GATEHOUSE_COOKIE_KEYS and GATEHOUSE_TOKEN_KEYS (`gatehouse keys` compares keys)';
const COOKIES_LOST = `make the proxy pass cookies on unchanged, cache nothing, and give every node the same GATEHOUSE_COOKIE_KEYS; ${PROXY_HELP}`;
const HEADER_LOST = `if the client is unknown, another deployment answers; otherwise the proxy removes the Authorization header; ${PROXY_HELP}`;
const REPEATED =
  'if the answer says “already used”, the proxy sent the POST twice, and must never repeat one; otherwise check that ' +
  `every node has the same stores and keys; ${PROXY_HELP}`;

type Step = readonly [name: string, run: () => Promise<string>];

export const FLOW_CHECK: Check = check(
  'flow',
  ['visitor', 'address', 'settings'],
  PUBLIC,
  async ({ visitor, address: { send }, settings }, { add, skip, signal }) => {
    const { issuer, tokens } = settings;
    const browser = createBrowser(issuer, send, { 'x-forwarded-for': BOGUS_ADDRESS });
    const user = approval(browser, visitor, issuer);
    const steps = [...user.steps, ...tokensLife({ ...visitor, ...tokens, send, held: user.held })];
    steps.push(['sign_out', () => signOut(browser)]);
    let failed: string | undefined;
    for (const [name, run] of steps) {
      const began = performance.now();
      if (failed !== undefined) skip(name, `the previous step failed (${failed})`);
      else {
        const verdict = await verdictOf(run, signal);
        // Report each step at once: Ctrl-C ends the flow.
        add(name, issuer, { ...verdict, ms: performance.now() - began });
        if (verdict.status === 'problem') failed = name.replaceAll('_', ' ');
      }
    }
    if (user.hasStarted()) add('cookies', issuer, cookiesVerdict([...browser.cookies.values()], issuer));
    return [];
  },
);

export const STREAM_CHECK: Check = check(
  'change_stream',
  ['visitor'],
  PUBLIC,
  async ({ visitor: { journey, stream } }, { signal }) => {
    if (!journey.isClientAccepted) return notChecked('the client could not authenticate');
    const verdict = await stream;
    signal.throwIfAborted();
    return verdict;
  },
);

async function verdictOf(run: Step[1], signal: AbortSignal): Promise<Verdict> {
  try {
    return ok(await run());
  } catch (error) {
    signal.throwIfAborted();
    return troubled(error instanceof StepFailed ? error.trouble : unreachable(error));
  }
}

/** The steps of the user, from the authorization request to the code. */
function approval(browser: ReturnType<typeof createBrowser>, { person, client }: Visitor, issuer: string) {
  const held = { code: '', redirectUri: client.redirectUri, verifier: randomId('', 43) };
  const state = randomId('', 22);
  let page: DoctorPage;
  let hasStarted = false;

  async function authorize(): Promise<string> {
    const query = authorizationRequest({ ...held, clientId: client.id, state });
    page = await browser.open(`${ENDPOINT.authorization}?${query}`);
    const [field, leads] = hasStarted ? ['decision', 'consent'] : ['password', 'sign-in'];
    const isRight = hasField(page, field);
    // 410: the browser did not return the cookie that the previous step had set.
    const remedy = hasStarted || page.status === 410 ? COOKIES_LOST : ANOTHER;
    hasStarted ||= isRight || page.status === 410;
    require(isRight, page, `GET ${ENDPOINT.authorization}`, remedy);
    return `an authorization request with PKCE and state leads to the ${leads} page`;
  }

  async function signIn(): Promise<string> {
    if ('linkPath' in person) return signInByLink(person.linkPath);
    page = await browser.submit(page, person);
    const isRight = hasField(page, 'decision') && !hasField(page, 'password');
    require(isRight, page, 'the sign-in form', page.status === 401 ? ANOTHER : COOKIES_LOST);
    return 'the correct password leads to the consent page';
  }

  async function signInByLink(path: string): Promise<string> {
    page = await browser.open(path);
    hasStarted = hasField(page, 'token');
    require(hasStarted, page, 'GET /password', page.status === 410 ? COOKIES_LOST : ANOTHER);
    page = await browser.submit(page, { token: new URL(path, issuer).searchParams.get('token') ?? '' });
    const isSignedIn = page.status === 200 && /^\/profile/.test(page.path);
    require(isSignedIn, page, 'the form of a one-time link', COOKIES_LOST);
    return 'a one-time link signs in (passwords are off, and a provider would need a person)';
  }

  async function consent(): Promise<string> {
    page = await browser.submit(page, { decision: 'approve' });
    const answer = page.location?.searchParams;
    held.code = answer?.get('code') ?? '';
    const isOurs = answer?.get('state') === state && answer.get('iss') === issuer && !answer.get('error');
    require(held.code !== '' && isOurs, page, 'the consent form', COOKIES_LOST);
    return 'approval leads back to the client, with a code, the state and the issuer';
  }

  const first: readonly Step[] = [
    ['authorize', authorize],
    ['sign_in', signIn],
  ];
  // A link does not resume a waiting authorization, so sign in first.
  const steps: Step[] = [...('linkPath' in person ? first.toReversed() : first), ['consent', consent]];
  return { held, steps, hasStarted: () => hasStarted };
}

/** Each step, with what the expected answer proves, and the remedy for any other answer. */
const CLIENT_STEPS: readonly (readonly [name: StepName, shows: string, remedy: string])[] = [
  ['exchange', 'the code is exchanged for an access token and a refresh token', REPEATED],
  ['introspect', 'the access token is active', NODES_DIFFER],
  ['refresh', 'both tokens are replaced', REPEATED],
  ['retry', 'the previous refresh token returns the same successor', `${NODES_DIFFER}; their clocks must agree, too`],
  ['revoke', 'the authorization is ended', NODES_DIFFER],
  ['introspect_revoked', 'the access token of the ended authorization is inactive at once', NODES_DIFFER],
  ['refresh_revoked', 'the refresh token of the ended authorization is refused (invalid_grant)', NODES_DIFFER],
];

/** The steps of the client, from the code to the end of all tokens. */
function tokensLife(
  parts: Visitor & { journey: { isClientAccepted: boolean }; held: Held; retryWindowSeconds: number; send: Send },
): Step[] {
  const { client, journey, retryWindowSeconds, send } = parts;
  let held: Held = parts.held;
  /** Authenticates with the header, because a proxy may withhold that header. */
  const authorization = `Basic ${Buffer.from(`${client.id}:${client.secret}`).toString('base64')}`;
  const post = (path: string, form: Readonly<Record<string, string>>): Promise<DoctorAnswer> =>
    send({ path, form, headers: { authorization } });

  return CLIENT_STEPS.map(([name, shows, remedy]) => [
    name,
    async () => {
      if (name === 'retry' && retryWindowSeconds === 0) return 'not tested: tokens.retry_window is 0s';
      // The code of the first step is known only now.
      const taken = await take(name, name === 'exchange' ? parts.held : held, post);
      const isUnknown = name === 'exchange' && taken.answer.body.error !== 'invalid_grant';
      const sent = `POST ${STEPS[name].path} (${name.replaceAll('_', ' ')})`;
      require(taken.isExpected, taken.answer, sent, isUnknown ? HEADER_LOST : remedy);
      ({ held } = taken);
      journey.isClientAccepted = true;
      return shows;
    },
  ]);
}

async function signOut(browser: ReturnType<typeof createBrowser>): Promise<string> {
  await browser.submit(await browser.open('/logout'), {});
  const page = await browser.open('/profile');
  // If the service has no passwords, this may redirect to a provider at once.
  require(!/^\/profile/.test(page.path), page, 'the sign-out form', COOKIES_LOST);
  return 'after the sign-out the profile page asks for a sign-in';
}

/** @param sent describes the request, without values. @throws StepFailed unless `isRight` */
function require(isRight: boolean, answer: DoctorAnswer, sent: string, remedy: string): void {
  if (isRight) return;
  const message = `${sent} was answered ${described(answer)}`;
  throw new StepFailed(explainConnectionError(answer) ?? { message, remedy });
}
