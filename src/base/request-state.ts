/** Values that one step of a request passes to later steps, in `ctx.state`. */
import type { Context } from 'koa';

declare module 'koa' {
  /** The fields of the request's log line. */
  interface DefaultState {
    requestId: string;
    /** The pattern of a route with an exact path. The router itself gives the patterns of other routes. */
    route?: string;
    /** Set only if a client with this id exists. */
    clientId?: string;
    accountId?: string;
    authorizationId?: string;
    /** Why the request was refused for now although nothing has failed: no other log line explains this 5xx. */
    cause?: string;
    /** The values that `requestState` stores, each under a symbol of its own. */
    [step: symbol]: unknown;
  }
}

/** The origin of a request, for the activity log of the account. */
export const requestOrigin = (ctx: Context): { readonly address: string; readonly browser: string } => ({
  address: ctx.ip,
  browser: ctx.get('user-agent'),
});

/**
 * A value that one step sets and later steps read. It is stored under a symbol, so that no other step can set it.
 *
 * @param step the name of the step that sets the value
 */
export function requestState<Value>(step: string) {
  const key = Symbol(step);
  const find = (ctx: Context): Value | undefined => ctx.state[key] as Value | undefined;
  return {
    find,
    set(ctx: Context, value: Value | undefined): void {
      ctx.state[key] = value;
    },
    /** @throws TypeError if the step has not run before. */
    get(ctx: Context): Value {
      const value = find(ctx);
      if (value === undefined) throw new TypeError(`${step} must come before`);
      return value;
    },
  };
}
