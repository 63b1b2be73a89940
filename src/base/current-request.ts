/** Finds the request for which the current code runs, so that no function needs it as a parameter. */
import { AsyncLocalStorage } from 'node:async_hooks';

export interface CurrentRequest {
  /** The id of the request, which is also the value of the response header `X-Request-Id`. */
  readonly requestId: string;
}

const storage = new AsyncLocalStorage<CurrentRequest | undefined>();

/** Returns the current request; undefined outside of requests, for example in timers and in operator commands. */
export const currentRequest = (): CurrentRequest | undefined => storage.getStore();

/** Runs `work`, and all asynchronous work that it starts, as part of the request. */
export const withinRequest = <Result>(request: CurrentRequest, work: () => Result): Result =>
  storage.run(request, work);

/** Runs `work` outside the current request, for example to start a timer that several requests share. */
export const outsideRequests = <Result>(work: () => Result): Result => storage.run(undefined, work);

/** Returns what pino adds to each line: the id of the current request. */
export const logMixin = (): object => ({ ...currentRequest() });
