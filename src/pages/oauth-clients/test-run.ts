/** Runs the authorization code flow as the server of the client would, and records each request with its answer. */
import type { Authorizations } from '../../authorizations/authorization.ts';
import type { Endings } from '../../authorizations/endings.ts';
import { type Message, message } from '../../base/message.ts';
import { type FlowAnswer, type Held, STEPS, type StepName, take } from '../../provider/client-flow.ts';
import type { ClientTest, ClientTests } from '../../provider/client-tests.ts';
import { ENDPOINT } from '../../provider/endpoints.ts';
import type { PostForm, ShownApi } from '../routes.ts';
import { durationOf } from '../words/moment.ts';
import { apiStep, bodyInLines, objectOf, parametersInLines, statusLine, type TestStep } from './wire-message.ts';

export interface TestOutcome {
  readonly outcome: 'passed' | 'denied' | 'stopped';
  readonly steps: readonly TestStep[];
  /** Present if an API is configured and its answer was as expected. */
  readonly apiAnswer?: string;
}

export interface ClientTestRun {
  readonly issuer: string;
  readonly clientId: string;
  /** Undefined for a public client. */
  readonly secret?: string | undefined;
  readonly verifier: string;
  readonly redirectUri: string;
  readonly request: URLSearchParams;
  readonly callback: URLSearchParams;
  readonly retryWindowSeconds: number;
  readonly postForm: PostForm;
  readonly api: ShownApi | undefined;
  /** Ends the authorization of the refresh token, after the last step. */
  end(refreshToken: string): Promise<void>;
}

/** Finishes a test. @param callback the query with which the browser was redirected back */
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

/** Stops after the first unexpected answer. */
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
  const error = callback.get('error');
  // RFC 9207 §2.4: reject the answer of another issuer.
  const isExpected = (error === null || error === 'access_denied') && callback.get('iss') === issuer;
  const shown = error === null ? 'approved' : 'denied';
  return {
    title: message('client-test.step-authorize'),
    request: `GET ${issuer}${ENDPOINT.authorization}\n${parametersInLines(request, '?')}`,
    answer: `303 See Other\n${redirectUri}\n${parametersInLines(callback, '?')}`,
    verdict: message(`client-test.shows-${isExpected ? shown : 'refused'}`),
    isExpected,
  };
}

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
      title: message(`client-test.step-${name}`),
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
    // Replaying an old refresh token ends the authorization.
    'replay',
    ...(isConfidential ? (['introspect_revoked'] as const) : []),
    'revoke',
  ];
}

const meaningOf = (name: StepName, { retryWindowSeconds }: ClientTestRun): Message =>
  message(`client-test.shows-${name}`, {
    window: durationOf(retryWindowSeconds),
    canRetry: String(retryWindowSeconds > 0),
  });

function refusalOf({ status, body }: FlowAnswer): Message {
  const { error, error_description: description } = body;
  if (typeof error !== 'string') return message('client-test.failed', { status });
  if (typeof description !== 'string') return message('client-test.refused-as', { error });
  return message('client-test.refused-because', { error, description });
}
