/** Formats HTTP messages for display, with one parameter on each line and with shortened secrets. */
import { STATUS_CODES } from 'node:http';
import { type Message, message } from '../../base/message.ts';
import type { ApiAnswer, ShownApi } from '../routes.ts';

export interface TestStep {
  readonly title: Message;
  /** Secret values are shortened in `request` and `answer`. */
  readonly request: string;
  readonly answer: string;
  /** Says what the answer proves, or what is wrong with it. */
  readonly verdict: Message;
  readonly isExpected: boolean;
}

/** The names of parameters and JSON members whose values are shortened. */
const SECRET_MEMBERS = new Set(['access_token', 'client_secret', 'code', 'code_verifier', 'refresh_token', 'token']);

/** Returns a text such as `gate_at_Ab12…z9Zz`, which still distinguishes the value from others. */
export function shortened(value: string): string {
  const [prefix = ''] = /^gate_[a-z]+_/.exec(value) ?? [];
  const rest = value.slice(prefix.length);
  return rest.length < 20 ? `${prefix}…` : `${prefix}${rest.slice(0, 4)}…${rest.slice(-4)}`;
}

/** @param first the beginning of the first line: `?` for a query; all other lines begin with `&` */
export function parametersInLines(parameters: URLSearchParams, first: '' | '?'): string {
  const lines = [...parameters].map(([name, value]) => `${name}=${shownValue(name, value)}`);
  return lines.map((line, index) => (index === 0 ? first : '&') + line).join('\n');
}

/** Indents a JSON object. Any other body is returned unchanged, because only JSON responses contain tokens. */
export function bodyInLines(body: string): string {
  const parsed = objectOf(body);
  if (!parsed) return body;
  const shown = Object.entries(parsed).map(([name, value]) => [name, shownValue(name, value)]);
  return JSON.stringify(Object.fromEntries(shown), null, 2);
}

/** Returns a text such as `404 Not Found`. */
export const statusLine = (status: number): string => `${status} ${STATUS_CODES[status] ?? ''}`.trim();

/** Returns undefined if the text is not a JSON object. */
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

/** Formats a request to the API as a step. @returns the step, and the formatted body as `shown` */
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
