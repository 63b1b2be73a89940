/** The caller in the context of a GraphQL server. */
import { STATUS_CODES } from 'node:http';
import type { Caller } from './caller.ts';
import type { Introspector } from './introspector.ts';
import type { ReceivedRequest } from './received-token.ts';
import { CallerRefused } from './refusal.ts';

/** An answer in the words of graphql-http, which sends it in place of the operation's result. */
export type GraphqlHttpAnswer = [
  body: string,
  init: {
    readonly status: number;
    readonly statusText: string;
    readonly headers: Record<string, string>;
  },
];

/**
 * For `createHandler` of graphql-http, whichever of its servers: resolvers find `caller` in their
 * context, and who is refused gets no operation executed.
 */
export function callerContext(introspector: Introspector) {
  return async function identifyCaller(request: {
    readonly headers: ReceivedRequest['headers'];
    readonly url: string;
    readonly raw: unknown;
  }): Promise<{ caller: Caller } | GraphqlHttpAnswer> {
    // Node's own request shows more of the headers than what graphql-http made of it.
    const { caller, refusal } = await introspector.identify({
      ...request,
      ...rawHeadersOf(request.raw),
    });
    if (!refusal) return { caller };
    const { status, headers, body } = refusal;
    return [body, { status, statusText: STATUS_CODES[status] ?? '', headers: { ...headers } }];
  };
}

/**
 * For any other server that hands over Node's request or that of fetch.
 *
 * @throws CallerRefused, which has `status`, `headers` and the code for GraphQL in `extensions`.
 */
export async function callerFrom(
  introspector: Introspector,
  request: ReceivedRequest,
): Promise<Caller> {
  const { caller, refusal } = await introspector.identify(request);
  if (refusal) throw new CallerRefused(refusal);
  return caller;
}

const rawHeadersOf = (raw: unknown): Pick<ReceivedRequest, 'rawHeaders'> =>
  typeof raw === 'object' && raw !== null && 'rawHeaders' in raw && Array.isArray(raw.rawHeaders)
    ? { rawHeaders: raw.rawHeaders }
    : {};
