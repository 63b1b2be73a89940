/** The values that one step of a request passes to later steps in `ctx.state`. */
import type { Context } from 'koa';

declare module 'koa' {
  /** These fields are written to the log line of the request. */
  interface DefaultState {
    requestId: string;
    /** The route's path. Set only if the path is fixed, because the router itself sets the pattern of other routes. */
    route?: string;
    /** Set only if a client with this id exists. */
    clientId?: string;
    accountId?: string;
    authorizationId?: string;
    /** The reason for a 5xx answer if no failure was logged. No other log line contains this reason. */
    cause?: string;
    /** `requestState` stores each value under a different symbol. */
    [step: symbol]: unknown;
  }
}

/** Returns the network address and the browser, as the activity log records them. */
export const requestOrigin = (ctx: Context): { readonly address: string; readonly browser: string } => ({
  address: ctx.ip,
  browser: ctx.get('user-agent'),
});

/**
 * Creates a value that one step sets and later steps read.
 *
 * @param step the name of the step that sets the value, for error messages
 */
export function requestState<Value>(step: string) {
  const key = Symbol(step);
  const find = (ctx: Context): Value | undefined => ctx.state[key] as Value | undefined;
  return {
    find,
    set(ctx: Context, value: Value | undefined): void {
      ctx.state[key] = value;
    },
    /** @throws TypeError if the step has not set the value yet */
    get(ctx: Context): Value {
      const value = find(ctx);
      if (value === undefined) throw new TypeError(`${step} must come before`);
      return value;
    },
  };
}
