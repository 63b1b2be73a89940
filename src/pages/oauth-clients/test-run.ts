/** The flow of a client, gone through as its own server would: each request with its answer. */
import { STATUS_CODES } from 'node:http';
import {
  type FlowAnswer,
  type Held,
  STEPS,
  type StepName,
  take,
} from '../../provider/client-flow.ts';
import { ENDPOINT } from '../../provider/endpoints.ts';
import { durationText } from '../moment.ts';
import type { PostForm } from '../routes.ts';
import { bodyInLines, objectOf, parametersInLines } from './wire-message.ts';

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
  const { issuer, clientId, secret, postForm, redirectUri, verifier } = run;
  const credentials = {
    client_id: clientId,
    ...(secret !== undefined && { client_secret: secret }),
  };
  const post = async (path: string, form: Readonly<Record<string, string>>) => {
    const sent = { ...form, ...credentials };
    const { status, body: text } = await postForm(path, sent);
    return { sent, status, text, body: objectOf(text) ?? {} };
  };
  const steps: TestStep[] = [];
  let held: Held = { code, redirectUri, verifier };
  try {
    for (const name of stepsOf(run)) {
      const { answer, isExpected, ...next } = await take(name, held, post);
      ({ held } = next);
      const { sent, status, text } = answer;
      steps.push({
        title: TITLES[name],
        request: `POST ${issuer}${STEPS[name].path}\n\n${parametersInLines(new URLSearchParams(sent), '')}`,
        answer: `${status} ${STATUS_CODES[status] ?? ''}\n\n${bodyInLines(text)}`.trim(),
        verdict: isExpected ? meaningOf(name, run) : refusalOf(answer),
        isExpected,
      });
      if (!isExpected) break;
    }
    return steps;
  } finally {
    if (held.refreshToken !== undefined) await run.end(held.refreshToken);
  }
}

function stepsOf({ secret, retryWindow }: ClientTestRun): StepName[] {
  const again = retryWindow > 0 ? 'retry' : 'replay';
  // RFC 7662 §2.1: only a client that can prove who it is may ask about a token.
  return secret === undefined
    ? ['exchange', 'refresh', again, 'revoke']
    : ['exchange', 'introspect', 'refresh', again, 'revoke', 'introspect_revoked'];
}

/** What the answer of a step shows where it is as it should be. */
const meaningOf = (name: StepName, { retryWindow }: ClientTestRun): string =>
  name === 'retry'
    ? `The same new refresh token as before. For ${durationText(retryWindow)} a lost answer, or two workers at once, do no harm; after that it is a replay and ends the authorization.`
    : SHOWN[name];

const SHOWN = {
  exchange: 'The code became an access token and a refresh token.',
  introspect:
    'It is active. A client is told no more of its own token; what the warehouse API is told stands at the end.',
  refresh: 'Both tokens are new. Store the refresh token of every answer.',
  replay: 'Refused, and everything is revoked: the operator of this service allows no retry.',
  revoke: 'The whole authorization is over.',
  introspect_revoked: 'The access token is dead at once, not when it expires.',
  refresh_revoked: 'The refresh token is dead as well.',
};

const TITLES: Readonly<Record<StepName, string>> = {
  exchange: 'Exchange the code',
  introspect: 'Ask about the token',
  refresh: 'Refresh',
  retry: 'Refresh with the old token again',
  replay: 'Refresh with the old token again',
  revoke: 'Revoke',
  introspect_revoked: 'Ask again',
  refresh_revoked: 'Refresh again',
};

function refusalOf({ status, body }: FlowAnswer): string {
  const { error, error_description: description } = body;
  if (typeof error !== 'string') return `Not as it should be: the answer was ${status}.`;
  return `Refused as ${error}${typeof description === 'string' ? `: ${description}` : ''}.`;
}
