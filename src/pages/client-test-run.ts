/** The flow of a client, gone through as its own server would: each request with its answer. */
import { STATUS_CODES } from 'node:http';
import { ENDPOINT } from '../provider/endpoints.ts';
import { clientTestPlan, holdTokens, NO_TOKENS, type PlannedAnswer } from './client-test-plan.ts';
import { bodyInLines, objectOf, parametersInLines } from './wire-message.ts';

/** Posts a form to a path of this service over HTTP, as anybody would. */
export type PostForm = (
  path: string,
  form: Readonly<Record<string, string>>,
) => Promise<{ readonly status: number; readonly body: string }>;

export interface TestStep {
  readonly title: string;
  /** As they went over the wire, with tokens, code, verifier and secret shortened. */
  readonly request: string;
  readonly answer: string;
  /** What it shows, or what is wrong. */
  readonly verdict: string;
  readonly isExpected: boolean;
}

export interface TestOutcome {
  readonly outcome: 'passed' | 'denied' | 'stopped';
  readonly steps: readonly TestStep[];
}

export interface ClientTestRun {
  readonly issuer: string;
  readonly clientId: string;
  /** Absent for a public client. */
  readonly secret?: string | undefined;
  readonly verifier: string;
  readonly redirectUri: string;
  /** The query of the authorization request, and the one that the browser came back with. */
  readonly request: URLSearchParams;
  readonly callback: URLSearchParams;
  /** Seconds. */
  readonly retryWindow: number;
  readonly postForm: PostForm;
  /** Ends the authorization of this refresh token; called at the end, however that came. */
  end(refreshToken: string): Promise<void>;
}

/** Stops at the first answer that is not as it should be. */
export async function runClientTest(run: ClientTestRun): Promise<TestOutcome> {
  const authorized = authorizationStep(run);
  const code = run.callback.get('code');
  if (code === null || !authorized.isExpected) {
    const isDenied = run.callback.get('error') === 'access_denied';
    return { outcome: isDenied ? 'denied' : 'stopped', steps: [authorized] };
  }
  const steps = [authorized, ...(await askEverything(run, code))];
  const isPassed = steps.every(({ isExpected }) => isExpected);
  return { outcome: isPassed ? 'passed' : 'stopped', steps };
}

function authorizationStep({ issuer, redirectUri, request, callback }: ClientTestRun): TestStep {
  const meaning = MEANINGS[callback.get('error') ?? 'none'];
  // RFC 9207 §2.4: an answer of another service is not to be believed.
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
  none: 'You approved, and your browser brought back a code, the state that was sent, and in iss the name of this service.',
  access_denied:
    'You denied it. A client is told access_denied, together with its state, and nothing is issued.',
};

async function askEverything(run: ClientTestRun, code: string): Promise<TestStep[]> {
  const { issuer, clientId, secret, postForm } = run;
  const credentials = {
    client_id: clientId,
    ...(secret !== undefined && { client_secret: secret }),
  };
  const steps: TestStep[] = [];
  let held = NO_TOKENS;
  try {
    for (const planned of clientTestPlan({ ...run, code, hasSecret: secret !== undefined })) {
      const { title, path } = planned;
      const form = { ...planned.form(held), ...credentials };
      const { status, body } = await postForm(path, form);
      const answer = { status, body: objectOf(body) ?? {} };
      const isExpected = planned.isExpected(answer, held);
      held = holdTokens(held, answer);
      steps.push({
        title,
        request: `POST ${issuer}${path}\n\n${parametersInLines(new URLSearchParams(form), '')}`,
        answer: `${status} ${STATUS_CODES[status] ?? ''}\n\n${bodyInLines(body)}`.trim(),
        verdict: isExpected ? planned.meaning : refusalOf(answer),
        isExpected,
      });
      if (!isExpected) break;
    }
    return steps;
  } finally {
    if (held !== NO_TOKENS) await run.end(held.refreshToken);
  }
}

function refusalOf({ status, body }: PlannedAnswer): string {
  const { error, error_description: description } = body;
  if (typeof error !== 'string') return `Not as it should be: the answer was ${status}.`;
  return `Refused as ${error}${typeof description === 'string' ? `: ${description}` : ''}.`;
}
