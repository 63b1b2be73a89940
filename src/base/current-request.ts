/** Gives access to the request that the running code works for, so that it need not be a parameter of every call. */
import { AsyncLocalStorage } from 'node:async_hooks';

export interface CurrentRequest {
  /** Also sent in the response header `X-Request-Id`. */
  readonly requestId: string;
  /** From the caller's `traceparent` header, if the header is valid. */
  readonly traceId?: string | undefined;
}

const storage = new AsyncLocalStorage<CurrentRequest | undefined>();

/** Returns undefined outside of requests: at the start, in timers, and in the operator command. */
export const currentRequest = (): CurrentRequest | undefined => storage.getStore();

/** Runs `work`, and everything that it starts, as part of the request. */
export const withinRequest = <Result>(request: CurrentRequest, work: () => Result): Result =>
  storage.run(request, work);

/** Runs `work` without a current request. For timers that several requests share. */
export const outsideRequests = <Result>(work: () => Result): Result => storage.run(undefined, work);

/**
 * The fields of a request in a log line. `trace_id` is the name that OpenTelemetry recommends for
 * logs in other formats than its own.
 */
export const requestFields = (request = currentRequest()) =>
  request && {
    requestId: request.requestId,
    ...(request.traceId !== undefined && { trace_id: request.traceId }),
  };

/** For pino: adds the fields of the current request to each line. */
export const logMixin = (): object => requestFields() ?? {};

/**
 * W3C Trace Context §3.2.2: version, trace id, parent id, flags, in lower case. Version ff and ids
 * of zeros are invalid. Node joins repeated headers with a comma, which does not match.
 */
const TRACEPARENT = /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?$/;

/** A later version of the header may be longer than the 55 characters of version 00. */
const MAX_HEADER_LENGTH = 255;

/** Returns the trace id of a valid `traceparent` header; undefined for any other value. */
export function traceIdOf(header: string | undefined): string | undefined {
  if (header === undefined || header.length > MAX_HEADER_LENGTH) return undefined;
  const [, version, traceId] = TRACEPARENT.exec(header) ?? [];
  // Only later versions may have further fields (§4.3), so version 00 has a fixed length.
  return version === '00' && header.length !== 55 ? undefined : traceId;
}
