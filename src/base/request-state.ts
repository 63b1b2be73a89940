/** What the steps of a request leave for those after them, in `ctx.state`. */
import type { Context } from 'koa';

declare module 'koa' {
  /** What the log line of the request is made of. */
  interface DefaultState {
    requestId: string;
    traceId?: string | undefined;
    /** The pattern of an exact route; the router says that of its own. */
    route?: string;
    /** Of a client that exists. */
    clientId?: string;
    accountId?: string;
    authorizationId?: string;
    /** Of `requestState`. */
    [step: symbol]: unknown;
  }
}

/** From where a request came, for the log of whom it is about. */
export const originOf = (ctx: Context): { readonly address: string; readonly browser: string } => ({
  address: ctx.ip,
  browser: ctx.get('user-agent'),
});

/**
 * A value that one step finds and later ones use. Under a symbol, so that nothing which takes all of
 * `ctx.state` for its own sees it: koa-views takes it for options.
 *
 * @param step its name.
 */
export function requestState<Value>(step: string) {
  const key = Symbol(step);
  const find = (ctx: Context): Value | undefined => ctx.state[key] as Value | undefined;
  return {
    find,
    set(ctx: Context, value: Value | undefined): void {
      ctx.state[key] = value;
    },
    /** @throws TypeError where the step does not stand before. */
    get(ctx: Context): Value {
      const value = find(ctx);
      if (value === undefined) throw new TypeError(`${step} must come before`);
      return value;
    },
  };
}
