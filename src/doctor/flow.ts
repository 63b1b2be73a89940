/** A whole authorization, from the sign-in to the revocation: sends real requests and times each one. */
import { BOGUS_ADDRESS } from '../base/network-address.ts';
import { randomId } from '../base/random-id.ts';
import { ENDPOINT } from '../provider/endpoints.ts';
import { createBrowser, type DoctorPage, hasField } from './browser.ts';
import { type Check, check, PUBLIC } from './check.ts';
import { authorizationRequest, type Held, STEPS, type StepName, take } from './client-flow.ts';
import { described, explainConnectionError, PROXY_HELP, unreachable } from './connection-errors.ts';
import { inWords, notChecked, ok, problem, type Verdict } from './findings.ts';
import type { DoctorAnswer, Send } from './requests.ts';
import { REDIRECT_URI, type Visitor } from './visitor.ts';

const judge = (isRight: boolean, answer: DoctorAnswer, sent: string, remedy: string, shows: string): Verdict =>
  isRight
    ? ok(shows)
    : (explainConnectionError(answer) ?? problem`${sent} was answered ${described(answer)} → ${remedy}`);

const ANOTHER =
  'another deployment answers at this address: compare DATABASE_URL and REDIS_URL of the nodes with those of the doctor';
const NODES_DIFFER =
  'give every node the same REDIS_URL, DATABASE_URL, GATEHOUSE_COOKIE_KEYS and GATEHOUSE_TOKEN_KEYS (`gatehouse keys` compares keys)';
const COOKIES_LOST = `make the proxy pass cookies on unchanged, cache nothing, and give every node the same GATEHOUSE_COOKIE_KEYS; ${PROXY_HELP}`;
const HEADER_LOST = `if the client is unknown, another deployment answers; otherwise the proxy removes the Authorization header; ${PROXY_HELP}`;
const REPEATED = `if the answer says “already used”, the proxy sent the POST twice, and must never repeat one; otherwise check that every node has the same stores and keys; ${PROXY_HELP}`;

type Step = readonly [name: string, run: () => Promise<Verdict>];

export const FLOW_CHECK: Check = check(
  'flow',
  ['visitor', 'service', 'settings'],
  PUBLIC,
  async ({ visitor, service: { send }, settings: { issuer, tokens }, add, signal }) => {
    const user = createUser(issuer, send, visitor);
    let failed = '';
    for (const [name, run] of [...user.steps, ...clientSteps(visitor, user.held, send, tokens), user.signOut]) {
      const began = performance.now();
      const verdict = failed
        ? notChecked(`the previous step failed (${failed})`)
        : await run().catch((error: unknown) => {
            signal.throwIfAborted();
            return unreachable(error);
          });
      // Report each step immediately, because Ctrl-C may end the flow.
      add(name, issuer, failed ? verdict : { ...verdict, ms: performance.now() - began });
      if (verdict.status === 'problem') failed = inWords(name);
    }
    return [];
  },
);

export const STREAM_CHECK: Check = check('change_stream', ['visitor'], PUBLIC, async ({ visitor, signal }) => {
  if (!visitor.journey.isClientAccepted) return notChecked('the client could not authenticate');
  const verdict = await visitor.stream;
  signal.throwIfAborted();
  return verdict;
});

function createUser(issuer: string, send: Send, { person, client }: Visitor) {
  const browser = createBrowser(issuer, send, { 'x-forwarded-for': BOGUS_ADDRESS });
  const held = { code: '', redirectUri: REDIRECT_URI, verifier: randomId('', 43) };
  const state = randomId('', 22);
  let page: DoctorPage;
  let hasStarted = false;

  async function authorize(): Promise<Verdict> {
    const query = authorizationRequest({ ...held, clientId: client.id, state });
    page = await browser.open(`${ENDPOINT.authorization}?${query}`);
    const [field, leads] = hasStarted ? ['decision', 'consent'] : ['password', 'sign-in'];
    const isRight = hasField(page, field);
    // Status 410 means that the browser did not return the cookie that the previous step had set.
    const remedy = hasStarted || page.status === 410 ? COOKIES_LOST : ANOTHER;
    hasStarted ||= isRight || page.status === 410;
    const shows = `an authorization request with PKCE and state leads to the ${leads} page`;
    return judge(isRight, page, `GET ${ENDPOINT.authorization}`, remedy, shows);
  }

  async function signIn(): Promise<Verdict> {
    if ('linkPath' in person) return signInByLink(person.linkPath);
    page = await browser.submit(page, person);
    const isRight = hasField(page, 'decision') && !hasField(page, 'password');
    const remedy = page.status === 401 ? ANOTHER : COOKIES_LOST;
    return judge(isRight, page, 'the sign-in form', remedy, 'the correct password leads to the consent page');
  }

  async function signInByLink(path: string): Promise<Verdict> {
    page = await browser.open(path);
    hasStarted = hasField(page, 'token');
    if (!hasStarted) return judge(false, page, 'GET /password', page.status === 410 ? COOKIES_LOST : ANOTHER, '');
    page = await browser.submit(page, { token: new URL(path, issuer).searchParams.get('token') ?? '' });
    const isSignedIn = page.status === 200 && /^\/profile/.test(page.path);
    const shows = 'a one-time link signs in (passwords are off, and a provider would need a person)';
    return judge(isSignedIn, page, 'the form of a one-time link', COOKIES_LOST, shows);
  }

  async function consent(): Promise<Verdict> {
    page = await browser.submit(page, { decision: 'approve' });
    const answer = page.location?.searchParams;
    held.code = answer?.get('code') ?? '';
    const isOurs = answer?.get('state') === state && answer.get('iss') === issuer && !answer.get('error');
    const shows = 'approval leads back to the client, with a code, the state and the issuer';
    return judge(held.code !== '' && isOurs, page, 'the consent form', COOKIES_LOST, shows);
  }

  async function signOut(): Promise<Verdict> {
    await browser.submit(await browser.open('/logout'), {});
    page = await browser.open('/profile');
    // Without passwords, the service may redirect to a sign-in provider at once.
    const isRight = !/^\/profile/.test(page.path);
    const shows = 'after the sign-out the profile page asks for a sign-in';
    return judge(isRight, page, 'the sign-out form', COOKIES_LOST, shows);
  }

  const first: readonly Step[] = [
    ['authorize', authorize],
    ['sign_in', signIn],
  ];
  // A one-time link does not resume a pending authorization, so use the link first and then authorize.
  const steps: Step[] = [...('linkPath' in person ? first.toReversed() : first), ['consent', consent]];
  const last: Step = ['sign_out', signOut];
  return { held, steps, signOut: last };
}

/** The steps of the client, each with what the expected answer proves, and the remedy for any other answer. */
const CLIENT_STEPS: readonly (readonly [name: StepName, shows: string, remedy: string])[] = [
  ['exchange', 'the code is exchanged for an access token and a refresh token', REPEATED],
  ['introspect', 'the access token is active', NODES_DIFFER],
  ['refresh', 'both tokens are replaced', REPEATED],
  ['retry', 'the previous refresh token returns the same successor', `${NODES_DIFFER}; their clocks must agree, too`],
  ['revoke', 'the authorization is ended', NODES_DIFFER],
  ['introspect_revoked', 'the access token of the ended authorization is inactive at once', NODES_DIFFER],
  ['refresh_revoked', 'the refresh token of the ended authorization is refused (invalid_grant)', NODES_DIFFER],
];

function clientSteps(
  { client, journey }: Visitor & { journey: { isClientAccepted: boolean } },
  before: Held,
  send: Send,
  { retryWindowSeconds }: { readonly retryWindowSeconds: number },
): Step[] {
  let held: Held | undefined;
  const post = (path: string, form: Readonly<Record<string, string>>): Promise<DoctorAnswer> =>
    send({ path, form, headers: { authorization: client.authorization } });

  return CLIENT_STEPS.map(([name, shows, remedy]) => [
    name,
    async () => {
      if (name === 'retry' && retryWindowSeconds === 0) return ok('not tested: tokens.retry_window is 0s');
      const { answer, isExpected, held: next } = await take(name, held ?? before, post);
      held = next;
      journey.isClientAccepted ||= isExpected;
      const isUnknown = name === 'exchange' && answer.body.error !== 'invalid_grant';
      const sent = `POST ${STEPS[name].path} (${inWords(name)})`;
      return judge(isExpected, answer, sent, isUnknown ? HEADER_LOST : remedy, shows);
    },
  ]);
}
