/** The trace that a request belongs to, as its caller or the proxy says (W3C Trace Context). */

/**
 * W3C Trace Context §3.2.2: version, trace id, parent id, flags, in lower case. Version ff and ids
 * of zeros are invalid. Node joins repeated headers with a comma, which does not match.
 */
const TRACEPARENT =
  /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?$/;

/** A later version of the header may be longer than the 55 characters of version 00. */
const MAX_HEADER_LENGTH = 255;

/** Returns the trace id of a valid `traceparent` header; undefined for any other value. */
export function traceIdOf(header: string | undefined): string | undefined {
  if (header === undefined || header.length > MAX_HEADER_LENGTH) return undefined;
  const [, version, traceId] = TRACEPARENT.exec(header) ?? [];
  // Only later versions may have further fields (§4.3).
  return version === '00' && header.length !== 55 ? undefined : traceId;
}
