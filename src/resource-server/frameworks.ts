/** The caller in the context of a GraphQL server, or who is refused answered: one way for each framework. */
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

const rawHeadersOf = (raw: unknown): Pick<ReceivedRequest, 'rawHeaders'> =>
  typeof raw === 'object' && raw !== null && 'rawHeaders' in raw && Array.isArray(raw.rawHeaders)
    ? { rawHeaders: raw.rawHeaders }
    : {};

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

/** What is used of a reply, so that no Fastify needs to be installed for its types. */
export interface RefusingReply {
  code(status: number): this;
  headers(headers: Record<string, string>): this;
  send(body: string): this;
}

/**
 * For Fastify, with Mercurius or without, as `app.addHook('onRequest', requireCaller(introspector))`: the
 * caller is `request.caller`. In the context of Mercurius itself a refusal would lose its headers.
 */
export function requireCaller(introspector: Introspector) {
  return async function identifyCaller(
    request: { readonly raw: ReceivedRequest; caller?: Caller },
    reply: RefusingReply,
  ): Promise<RefusingReply | undefined> {
    const { caller, refusal } = await introspector.identify(request.raw);
    // Fastify goes no further once something was sent.
    if (refusal) return reply.code(refusal.status).headers(refusal.headers).send(refusal.body);
    request.caller = caller;
    return undefined;
  };
}

/** What is used of a Koa context, so that no Koa needs to be installed for its types. */
export interface ProtectedContext {
  readonly req: ReceivedRequest;
  readonly state: { caller?: Caller };
  status: number;
  body: unknown;
  set(headers: { [name: string]: string }): void;
}

/** Middleware of Koa: everything used after it finds the caller of the request in `ctx.state.caller`. */
export function protect(introspector: Introspector) {
  return async function requireCaller(
    ctx: ProtectedContext,
    next: () => Promise<unknown>,
  ): Promise<void> {
    const { caller, refusal } = await introspector.identify(ctx.req);
    if (refusal) {
      ctx.status = refusal.status;
      ctx.body = refusal.body;
      ctx.set({ ...refusal.headers });
      return;
    }
    ctx.state.caller = caller;
    await next();
  };
}

/** A plugin of GraphQL Yoga, before anything of a request is parsed: resolvers find `caller` in their context, those of a batch as well. */
export function useCaller(introspector: Introspector) {
  return {
    async onRequestParse(asked: {
      readonly request: Request;
      readonly serverContext: object & { readonly req?: ReceivedRequest };
      endResponse(response: Response): void;
      readonly fetchAPI: { readonly Response: typeof Response };
    }): Promise<void> {
      const { headers, url } = asked.request;
      const rawHeaders = asked.serverContext.req?.rawHeaders;
      const { caller, refusal } = await introspector.identify({ headers, url, rawHeaders });
      if (!refusal) Object.assign(asked.serverContext, { caller });
      else asked.endResponse(new asked.fetchAPI.Response(refusal.body, refusal));
    },
    onExecute: () => ({ onExecuteDone: unmask }),
    onSubscribe: () => ({ onSubscribeResult: unmask }),
  };
}

/** Yoga masks each error that another one caused; this one is meant to be seen. */
function unmask({ result }: { readonly result: object }): void {
  for (const error of 'errors' in result && Array.isArray(result.errors) ? result.errors : []) {
    if (error.originalError instanceof CallerRefused) error.originalError = undefined;
  }
}
