/** Fastify, with Mercurius or without: lets identified callers in, and answers everybody else. */
import type { Caller } from './caller.ts';
import type { Introspector } from './introspector.ts';
import type { ReceivedRequest } from './received-token.ts';

/** What is used of a reply, so that no Fastify needs to be installed for its types. */
export interface RefusingReply {
  code(status: number): this;
  headers(headers: Record<string, string>): this;
  send(body: string): this;
}

/**
 * For `app.addHook('onRequest', requireCaller(introspector))`: the caller is `request.caller`. In the
 * context of Mercurius itself a refusal would lose its headers.
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
