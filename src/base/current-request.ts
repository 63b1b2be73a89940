/** Finds the request for which the current code runs, so that no function needs it as a parameter. */
import { AsyncLocalStorage } from 'node:async_hooks';

export interface CurrentRequest {
  /** Also the value of the response header `X-Request-Id`. */
  readonly requestId: string;
  /** From the caller's `traceparent` header, if the header is valid. */
  readonly traceId?: string | undefined;
}

const storage = new AsyncLocalStorage<CurrentRequest | undefined>();

/** Returns undefined outside of requests, for example in timers and in operator commands. */
export const currentRequest = (): CurrentRequest | undefined => storage.getStore();

/** Runs `work`, and all asynchronous work that it starts, as part of the request. */
export const withinRequest = <Result>(request: CurrentRequest, work: () => Result): Result =>
  storage.run(request, work);

/** Runs `work` without a current request, for example to start a timer that several requests share. */
export const outsideRequests = <Result>(work: () => Result): Result => storage.run(undefined, work);

/**
 * Returns the fields of a request in a log line. OpenTelemetry recommends the name `trace_id` for logs in other formats
 * than its own.
 */
export const requestFields = (request = currentRequest()) =>
  request && {
    requestId: request.requestId,
    ...(request.traceId !== undefined && { trace_id: request.traceId }),
  };

/** Pino's `mixin` option, which adds the fields of the current request to each log line. */
export const logMixin = (): object => requestFields() ?? {};

/**
 * W3C Trace Context §3.2.2: version, trace id, parent id and flags, in lower case. Version ff and ids of only zeros are
 * invalid. Repeated headers do not match, because Node joins them with a comma.
 */
const TRACEPARENT = /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?$/;

/** More than the 55 characters of version 00, because a later version of the header may be longer. */
const MAX_HEADER_LENGTH = 255;

/** Returns undefined unless the value of the `traceparent` header is valid. */
export function traceIdOf(header: string | undefined): string | undefined {
  if (header === undefined || header.length > MAX_HEADER_LENGTH) return undefined;
  const [, version, traceId] = TRACEPARENT.exec(header) ?? [];
  // Version 00 has a fixed length, because only later versions may have more fields (§4.3).
  return version === '00' && header.length !== 55 ? undefined : traceId;
}
