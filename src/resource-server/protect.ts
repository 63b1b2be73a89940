/** Koa middleware: lets identified callers in, and answers everybody else. */
import type { Caller } from './caller.ts';
import type { Introspector } from './introspector.ts';
import type { ReceivedRequest } from './received-token.ts';

/** What is used of a Koa context, so that no Koa needs to be installed for its types. */
export interface ProtectedContext {
  readonly req: ReceivedRequest;
  readonly state: { caller?: Caller };
  status: number;
  body: unknown;
  set(headers: { [name: string]: string }): void;
}

/** Everything used after it finds the caller of the request in `ctx.state.caller`. */
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
