/** Adapters for frameworks: each puts the caller into the context, or responds with the refusal. */
import { STATUS_CODES } from 'node:http';
import type { Caller } from './caller.ts';
import type { Introspector } from './introspector.ts';
import { isPreflight, type ReceivedRequest } from './received-token.ts';
import { CallerRefused, type Refusal } from './refusal.ts';

declare global {
  namespace Express {
    interface Request {
      /** Set by `protectExpress`. */
      caller: Caller;
    }
  }
}

// biome-ignore lint/suspicious/noTsIgnore: an API may have installed Fastify or not.
/** @ts-ignore */
declare module 'fastify' {
  interface FastifyRequest {
    /** Set by `requireCaller`. */
    caller: Caller;
  }
}

// biome-ignore lint/suspicious/noTsIgnore: an API may have installed graphql-sse or not.
/** @ts-ignore */
declare module 'graphql-sse/lib/use/http' {
  interface RequestContext {
    /** Set by the API's `authenticate`. */
    caller: Caller;
  }
}

/** A response that graphql-http sends instead of the operation's result. */
export type GraphqlHttpAnswer = [
  body: string,
  init: {
    readonly status: number;
    readonly statusText: string;
    readonly headers: Record<string, string>;
  },
];

/**
 * Use this with `createHandler` of graphql-http, for any of its servers. Resolvers find `caller` in their context. An
 * operation of a refused caller is not executed.
 */
export function callerContext(introspector: Introspector) {
  return async function identifyCaller(request: {
    readonly headers: ReceivedRequest['headers'];
    readonly url: string;
    readonly raw: unknown;
  }): Promise<{ caller: Caller } | GraphqlHttpAnswer> {
    // Use Node's own request: it shows a second Authorization header, which graphql-http hides.
    const raw = request.raw as ReceivedRequest | undefined;
    const { caller, refusal } = await introspector.identify({ ...request, rawHeaders: raw?.rawHeaders });
    if (!refusal) return { caller };
    const { status, headers, body } = refusal;
    return [body, { status, statusText: String(STATUS_CODES[status]), headers: { ...headers } }];
  };
}

/**
 * For any other server that provides Node's request or the Request of fetch.
 *
 * @throws CallerRefused, which has `status`, `headers` and the code for GraphQL in `extensions`.
 */
export async function callerFrom(introspector: Introspector, request: ReceivedRequest): Promise<Caller> {
  const { caller, refusal } = await introspector.identify(request);
  return refusal ? refuse(refusal) : caller;
}

/**
 * Identifies the caller, and makes it the property `caller` of `target`.
 *
 * A preflight has no credentials, but must reach the API's CORS code. Any program can send one, so
 * code that reads the caller gets the refusal.
 *
 * @returns the refusal to answer with; undefined if the request may continue.
 */
async function identifyFor(
  target: object,
  request: ReceivedRequest,
  introspector: Introspector,
): Promise<Refusal | undefined> {
  const { caller, refusal } = await introspector.identify(request);
  if (!refusal) Object.assign(target, { caller });
  else if (!isPreflight(request)) return refusal;
  else Object.defineProperty(target, 'caller', { configurable: true, get: () => refuse(refusal) });
  return undefined;
}

function refuse(refusal: Refusal): never {
  throw new CallerRefused(refusal);
}

/** The parts of Node's response used here, so that the types do not depend on Express. */
export interface RefusingResponse {
  readonly headersSent: boolean;
  writeHead(status: number, headers: Record<string, string>): { end(body: string): unknown };
}

type Next = (error?: unknown) => void;

/**
 * Middleware of Express 4 and 5: answers refusals itself. Later handlers find the caller in
 * `request.caller`.
 */
export function protectExpress(introspector: Introspector) {
  return function requireCaller(request: ReceivedRequest, response: RefusingResponse, next: Next): void {
    // Express 4 handles no rejections, so this promise must not reject.
    identifyFor(request, request, introspector)
      .then((refusal) => (refusal ? sendRefusal(response, refusal) : next()))
      .catch(next);
  };
}

/** Error handler of Express 4 and 5, to be used after the routes: answers the errors that `requireRight` throws. */
export function answerRefusals(
  error: unknown,
  _request: ReceivedRequest,
  response: RefusingResponse,
  next: Next,
): void {
  if (error instanceof CallerRefused && !response.headersSent) {
    sendRefusal(response, error.refusal);
  } else next(error);
}

function sendRefusal(response: RefusingResponse, { status, headers, body }: Refusal): void {
  response.writeHead(status, { ...headers }).end(body);
}

/** The parts of a reply used here, so that the types do not depend on Fastify. */
export interface RefusingReply {
  code(status: number): this;
  headers(headers: Record<string, string>): this;
  send(body: string): this;
}

/**
 * For Fastify, with or without Mercurius: `app.addHook('onRequest', requireCaller(introspector))`.
 * The caller is `request.caller`. In Mercurius's context function a refusal would lose its headers.
 */
export function requireCaller(introspector: Introspector) {
  return async function identifyCaller(
    request: { readonly raw: ReceivedRequest; caller?: Caller },
    reply: RefusingReply,
  ): Promise<RefusingReply | undefined> {
    const refusal = await identifyFor(request, request.raw, introspector);
    if (!refusal) return undefined;
    // Fastify runs no further handler after a reply was sent.
    return reply.code(refusal.status).headers(refusal.headers).send(refusal.body);
  };
}

/** The parts of a Koa context used here, so that the types do not depend on Koa. */
export interface ProtectedContext {
  readonly req: ReceivedRequest;
  readonly state: { caller?: Caller };
  status: number;
  body: unknown;
  set(headers: { [name: string]: string }): void;
}

/** Koa middleware: later middleware finds the caller in `ctx.state.caller`. */
export function protect(introspector: Introspector) {
  return async function requireCaller(ctx: ProtectedContext, next: () => Promise<unknown>): Promise<void> {
    const refusal = await identifyFor(ctx.state, ctx.req, introspector);
    if (!refusal) {
      await next();
      return;
    }
    ctx.status = refusal.status;
    ctx.body = refusal.body;
    ctx.set({ ...refusal.headers });
  };
}

/** A GraphQL Yoga plugin that runs before parsing. Resolvers find `caller`, also in batches. */
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

/** Yoga masks errors that have an original error, but the caller should see the refusal. */
function unmask({ result }: { readonly result: object }): void {
  const { errors } = result as { readonly errors?: readonly { originalError?: unknown }[] | null };
  for (const error of errors ?? []) {
    if (error.originalError instanceof CallerRefused) error.originalError = undefined;
  }
}
