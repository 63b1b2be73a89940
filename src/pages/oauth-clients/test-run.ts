/** Runs the flow of a client as its own server would, and records each request with its answer. */
import type { Authorizations } from '../../authorizations/authorization.ts';
import type { Endings } from '../../authorizations/endings.ts';
import { type FlowAnswer, type Held, STEPS, type StepName, take } from '../../provider/client-flow.ts';
import type { ClientTest, ClientTests } from '../../provider/client-tests.ts';
import { ENDPOINT } from '../../provider/endpoints.ts';
import type { PostForm, ShownApi } from '../routes.ts';
import { durationText } from '../words/moment.ts';
import { apiStep, bodyInLines, objectOf, parametersInLines, statusLine, type TestStep } from './wire-message.ts';

export interface TestOutcome {
  readonly outcome: 'passed' | 'denied' | 'stopped';
  readonly steps: readonly TestStep[];
  /** The API's answer, if there is an API and the answer was as expected. */
  readonly apiAnswer?: string;
}

export interface ClientTestRun {
  readonly issuer: string;
  readonly clientId: string;
  /** Undefined for a public client. */
  readonly secret?: string | undefined;
  readonly verifier: string;
  readonly redirectUri: string;
  /** The query of the authorization request. */
  readonly request: URLSearchParams;
  readonly callback: URLSearchParams;
  readonly retryWindowSeconds: number;
  readonly postForm: PostForm;
  readonly api: ShownApi | undefined;
  /** Ends the authorization of a refresh token; called at the end. */
  end(refreshToken: string): Promise<void>;
}

/** Finishes a test with the query of the callback. */
export type RunClientTest = (test: ClientTest, callback: URLSearchParams) => Promise<TestOutcome>;

export const createClientTestRunner =
  (parts: {
    readonly issuer: string;
    readonly api: ShownApi | undefined;
    readonly postForm: PostForm;
    readonly retryWindow: number;
    readonly clientTests: Pick<ClientTests, 'redirectUri' | 'requestOf'>;
    readonly authorizations: Pick<Authorizations, 'find'>;
    readonly endings: Pick<Endings, 'end'>;
  }): RunClientTest =>
  (test, callback) => {
    const { issuer, api, postForm, retryWindow, clientTests, authorizations, endings } = parts;
    return runClientTest({
      ...test,
      issuer,
      api,
      callback,
      postForm,
      retryWindowSeconds: retryWindow,
      redirectUri: clientTests.redirectUri,
      request: clientTests.requestOf(test, callback.get('state') ?? ''),
      async end(refreshToken) {
        const left = await authorizations.find(refreshToken);
        const why = { cause: 'client_revoked', actor: 'service' } as const;
        if (left) await endings.end({ authorization: left.authorization, ...why });
      },
    });
  };

/** Stops at the first unexpected answer. */
async function runClientTest(run: ClientTestRun): Promise<TestOutcome> {
  const authorized = authorizationStep(run);
  const code = run.callback.get('code');
  if (code === null || !authorized.isExpected) {
    const isDenied = run.callback.get('error') === 'access_denied';
    return { outcome: isDenied ? 'denied' : 'stopped', steps: [authorized] };
  }
  const { steps, ...gained } = await askEverything(run, code);
  const outcome = steps.every(({ isExpected }) => isExpected) ? 'passed' : 'stopped';
  return { outcome, steps: [authorized, ...steps], ...gained };
}

function authorizationStep({ issuer, redirectUri, request, callback }: ClientTestRun): TestStep {
  const meaning = MEANINGS[callback.get('error') ?? 'none'];
  // RFC 9207 §2.4: reject an answer from another issuer.
  const isExpected = meaning !== undefined && callback.get('iss') === issuer;
  return {
    title: 'Authorization request',
    request: `GET ${issuer}${ENDPOINT.authorization}\n${parametersInLines(request, '?')}`,
    answer: `303 See Other\n${redirectUri}\n${parametersInLines(callback, '?')}`,
    verdict: isExpected ? meaning : 'The request was refused. The answer says why.',
    isExpected,
  };
}

const MEANINGS: Readonly<Record<string, string>> = {
  none: 'You approved, and your browser brought back a code, the state that was sent, and iss, our issuer.',
  access_denied: 'You denied it. A client gets access_denied with its state, and nothing is issued.',
};

async function askEverything(run: ClientTestRun, code: string): Promise<Omit<TestOutcome, 'outcome'>> {
  const { redirectUri, verifier, api } = run;
  const post = posting(run);
  const steps: TestStep[] = [];
  let held: Held = { code, redirectUri, verifier };
  let apiAnswer: string | undefined;

  async function askService(name: StepName): Promise<TestStep> {
    const { answer, isExpected, ...next } = await take(name, held, post);
    ({ held } = next);
    const sent = parametersInLines(new URLSearchParams(answer.sent), '');
    return {
      title: TITLES[name],
      request: `POST ${run.issuer}${STEPS[name].path}\n\n${sent}`,
      answer: `${statusLine(answer.status)}\n\n${bodyInLines(answer.text)}`.trim(),
      verdict: isExpected ? meaningOf(name, run) : refusalOf(answer),
      isExpected,
    };
  }

  async function askApi(at: ShownApi): Promise<TestStep> {
    const { shown, ...step } = apiStep(at, await at.call(held.accessToken ?? ''));
    if (step.isExpected) apiAnswer = shown;
    return step;
  }

  try {
    for (const name of stepsOf(run)) {
      if (name !== 'query') steps.push(await askService(name));
      else if (api) steps.push(await askApi(api));
      if (!steps.at(-1)?.isExpected) return { steps };
    }
    return { steps, ...(apiAnswer !== undefined && { apiAnswer }) };
  } finally {
    if (held.refreshToken !== undefined) await run.end(held.refreshToken);
  }
}

/** Returns a function that posts a form with the client's credentials. */
function posting({ clientId, secret, postForm }: ClientTestRun) {
  const credentials = {
    client_id: clientId,
    ...(secret !== undefined && { client_secret: secret }),
  };
  return async (path: string, form: Readonly<Record<string, string>>) => {
    const sent = { ...form, ...credentials };
    const { status, body: text } = await postForm(path, sent);
    return { sent, status, text, body: objectOf(text) ?? {} };
  };
}

function stepsOf({ secret, retryWindowSeconds }: ClientTestRun): (StepName | 'query')[] {
  // RFC 7662 §2.1: only an authenticated client may introspect a token.
  const isConfidential = secret !== undefined;
  const canRetry = retryWindowSeconds > 0;
  return [
    'exchange',
    ...(isConfidential ? (['introspect'] as const) : []),
    'refresh',
    ...(canRetry ? (['retry'] as const) : []),
    'query',
    ...(canRetry ? (['refresh_again'] as const) : []),
    // This ends the authorization.
    'replay',
    ...(isConfidential ? (['introspect_revoked'] as const) : []),
    'revoke',
  ];
}

/** Explains the expected answer of a step. */
function meaningOf(name: StepName, { retryWindowSeconds }: ClientTestRun): string {
  const window = durationText(retryWindowSeconds);
  if (name === 'retry')
    return `The same new refresh token as before. For ${window} a lost answer, or two workers at once, do no harm; after that it is a replay and ends the authorization.`;
  if (name === 'replay' && retryWindowSeconds > 0)
    return `Refused, and everything is revoked. The same happens to a client that keeps its first refresh token, from the second refresh on that comes more than ${window} after the one before.`;
  return SHOWN[name];
}

const SHOWN = {
  exchange: 'The code became an access token and a refresh token.',
  introspect:
    'It is active. A client sees no more about its own token; the end of this page shows what the warehouse API sees.',
  refresh: 'Both tokens are new. Store the refresh token of every answer.',
  refresh_again: 'Both tokens are new again. The first refresh token is now beyond the retry window.',
  replay: 'Refused, and everything is revoked: the operator of this service allows no retry.',
  revoke: 'The answer to a client that disconnects: 200, also for a token that has ended.',
  introspect_revoked: 'The access token is invalid at once, not only when it expires.',
  refresh_revoked: 'The refresh token is invalid, too.',
};

const TITLES: Readonly<Record<StepName, string>> = {
  exchange: 'Exchange the code',
  introspect: 'Introspect the access token',
  refresh: 'Refresh',
  retry: 'Refresh with the old token again',
  refresh_again: 'Refresh a second time',
  replay: 'Refresh with the first refresh token',
  revoke: 'Revoke',
  introspect_revoked: 'Introspect again',
  refresh_revoked: 'Refresh again',
};

function refusalOf({ status, body }: FlowAnswer): string {
  const { error, error_description: description } = body;
  if (typeof error !== 'string') return `Failed: the answer was ${status}.`;
  return `Refused as ${error}${typeof description === 'string' ? `: ${description}` : ''}.`;
}
