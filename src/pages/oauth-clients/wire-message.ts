/** Formats HTTP messages for display: one parameter per line, and shortened secret values. */
import { STATUS_CODES } from 'node:http';
import { type Message, message } from '../../base/message.ts';
import type { ApiAnswer, ShownApi } from '../routes.ts';

/** One request of a test with its answer. */
export interface TestStep {
  readonly title: Message;
  /** The request as sent. Tokens, code, verifier and secret are shortened, as in `answer`. */
  readonly request: string;
  readonly answer: string;
  /** Explains what the answer proves, or what is wrong with it. */
  readonly verdict: Message;
  readonly isExpected: boolean;
}

/** The parameters and JSON members whose value must be shortened. */
const SECRET_MEMBERS = new Set(['access_token', 'client_secret', 'code', 'code_verifier', 'refresh_token', 'token']);

/** Shortens a value so that it can still be distinguished from others: `gate_at_Ab12…z9Zz`. */
export function shortened(value: string): string {
  const [prefix = ''] = /^gate_[a-z]+_/.exec(value) ?? [];
  const rest = value.slice(prefix.length);
  return rest.length < 20 ? `${prefix}…` : `${prefix}${rest.slice(0, 4)}…${rest.slice(-4)}`;
}

/** @param first starts the first line: `?` for a query, else empty; other lines start with `&`. */
export function parametersInLines(parameters: URLSearchParams, first: '' | '?'): string {
  const lines = [...parameters].map(([name, value]) => `${name}=${shownValue(name, value)}`);
  return lines.map((line, index) => (index === 0 ? first : '&') + line).join('\n');
}

/** Indents a JSON object. Returns any other text unchanged, because only our JSON responses contain tokens. */
export function bodyInLines(body: string): string {
  const parsed = objectOf(body);
  if (!parsed) return body;
  const shown = Object.entries(parsed).map(([name, value]) => [name, shownValue(name, value)]);
  return JSON.stringify(Object.fromEntries(shown), null, 2);
}

/** Returns a line like `404 Not Found`. */
export const statusLine = (status: number): string => `${status} ${STATUS_CODES[status] ?? ''}`.trim();

/** Returns the JSON object that the text contains, or undefined. */
export function objectOf(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const parsed: unknown = JSON.parse(text);
    return typeof parsed === 'object' && parsed !== null ? { ...parsed } : undefined;
  } catch {
    return undefined;
  }
}

const shownValue = <Value>(name: string, value: Value): Value | string =>
  typeof value === 'string' && SECRET_MEMBERS.has(name) ? shortened(value) : value;

/** Formats a call of the API as a step. @returns the step; `shown` is the formatted body */
export function apiStep(
  { graphqlUrl, exampleQuery }: ShownApi,
  answer: ApiAnswer,
): TestStep & { readonly shown: string } {
  const request = `POST ${graphqlUrl}\nAuthorization: Bearer gate_at_…\n\n${JSON.stringify({ query: exampleQuery })}`;
  const title = message('client-test.step-query');
  if ('failure' in answer) {
    const verdict = message('client-test.no-answer', { failure: answer.failure });
    return { title, request, answer: '', verdict, isExpected: false, shown: '' };
  }
  const { status, body, isCut } = answer;
  const { data, errors } = objectOf(body) ?? {};
  const isExpected = status === 200 && (isCut || (Boolean(data) && errors === undefined));
  const shown = isCut ? `${body}\n…` : bodyInLines(body);
  return {
    title,
    request,
    answer: `${statusLine(status)}\n\n${shown}`.trim(),
    verdict: message(isExpected ? 'client-test.first-answer' : 'client-test.odd-answer'),
    isExpected,
    shown,
  };
}
