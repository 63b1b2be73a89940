/** The request that the running code works for, without passing it through every call. */
import { AsyncLocalStorage } from 'node:async_hooks';

export interface CurrentRequest {
  /** As the answer says in `X-Request-Id`. */
  readonly requestId: string;
  /** From the caller's `traceparent`, if it sent a valid one. */
  readonly traceId?: string | undefined;
}

const storage = new AsyncLocalStorage<CurrentRequest | undefined>();

/** Undefined outside requests: at the start, in timers, in the operator command. */
export const currentRequest = (): CurrentRequest | undefined => storage.getStore();

/** Runs `work`, and everything that it starts, as part of the request. */
export const withinRequest = <Result>(request: CurrentRequest, work: () => Result): Result =>
  storage.run(request, work);

/** Runs `work` without a current request. For timers that several requests share. */
export const outsideRequests = <Result>(work: () => Result): Result => storage.run(undefined, work);

/** Binds `work` to the request that runs now, for work that a shared timer or queue starts later. */
export const boundToRequest = <Work extends () => unknown>(work: Work): Work =>
  AsyncLocalStorage.bind(work);

/**
 * The fields of a request in a log line. `trace_id` is the name that OpenTelemetry gives it in logs
 * that are not its own.
 */
export const requestFields = (request = currentRequest()) =>
  request && {
    requestId: request.requestId,
    ...(request.traceId !== undefined && { trace_id: request.traceId }),
  };

/** For pino: adds the fields of the current request to each line. */
export const logMixin = (): object => requestFields() ?? {};
