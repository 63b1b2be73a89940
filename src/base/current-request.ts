/** Gives access to the request that the running code works for, so that it need not be a parameter of every call. */
import { AsyncLocalStorage } from 'node:async_hooks';

export interface CurrentRequest {
  /** Also sent in the response header `X-Request-Id`. */
  readonly requestId: string;
}

const storage = new AsyncLocalStorage<CurrentRequest | undefined>();

/** Returns undefined outside of requests: at the start, in timers, and in the operator command. */
export const currentRequest = (): CurrentRequest | undefined => storage.getStore();

/** Runs `work`, and everything that it starts, as part of the request. */
export const withinRequest = <Result>(request: CurrentRequest, work: () => Result): Result =>
  storage.run(request, work);

/** Runs `work` without a current request. For timers that several requests share. */
export const outsideRequests = <Result>(work: () => Result): Result => storage.run(undefined, work);

/** For pino: adds the id of the current request to each line. */
export const logMixin = (): object => ({ ...currentRequest() });
