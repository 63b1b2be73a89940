/** The last step of a test: a real query, to the API that the tokens are for. */
import type { ApiAnswer, ShownApi } from '../routes.ts';
import { bodyInLines, objectOf, statusLine, type TestStep } from './wire-message.ts';

/** `shown`: the body as a person reads it. */
export function apiStep(
  { graphqlUrl, exampleQuery }: ShownApi,
  answer: ApiAnswer,
): TestStep & { readonly shown: string } {
  const request = `POST ${graphqlUrl}\nAuthorization: Bearer gate_at_…\n\n${JSON.stringify({ query: exampleQuery })}`;
  const title = 'Call the warehouse API';
  if ('failure' in answer) {
    const verdict =
      `The tokens are good, and the API did not answer: ${answer.failure}. ` +
      'The operator of this service knows where it should be.';
    return { title, request, answer: 'No answer', verdict, isExpected: false, shown: '' };
  }
  const { status, body, isCut } = answer;
  const { data, errors } = objectOf(body) ?? {};
  const isExpected = status === 200 && (isCut || (Boolean(data) && errors === undefined));
  const shown = isCut ? `${body}\n… and more, which is not shown.` : bodyInLines(body);
  return {
    title,
    request,
    answer: `${statusLine(status)}\n\n${shown}`.trim(),
    verdict: isExpected
      ? 'Your first answer: as the person who approved, with what they may reach at this moment.'
      : 'The tokens are good, and the API did not answer the query as it should. The answer says why.',
    isExpected,
    shown,
  };
}
