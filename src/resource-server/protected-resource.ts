/** What an API says of itself to clients that discover (RFC 9728). */

export interface ProtectedResource {
  /** Where the document is asked for, without credentials, by GET (§3.1). */
  readonly url: string;
  readonly path: string;
  /** To be answered there as `application/json`. */
  readonly document: {
    readonly resource: string;
    readonly authorization_servers: readonly string[];
    readonly bearer_methods_supported: readonly string[];
  };
  /** Of the challenge (§5.1); an introspector that is told `resource` adds it. */
  readonly parameter: string;
}

const WELL_KNOWN = '/.well-known/oauth-protected-resource';

/**
 * @param resource the API's own address, as its callers know it.
 * @throws TypeError when that is no http or https URL, or has a fragment (§1.2).
 */
export function protectedResourceMetadata(parts: {
  readonly resource: string;
  readonly issuer: string;
}): ProtectedResource {
  const { resource, issuer } = parts;
  const address = URL.canParse(resource) ? new URL(resource) : undefined;
  if (!address || !/^https?:$/.test(address.protocol) || resource.includes('#')) {
    throw new TypeError('resource must be an http or https URL without a fragment');
  }
  // §3.1: between the host and the path, and nothing for the path that is only a slash.
  const path = `${WELL_KNOWN}${address.pathname.replace(/\/$/, '')}${address.search}`;
  const url = `${address.origin}${path}`;
  return {
    url,
    path,
    document: {
      resource,
      authorization_servers: [issuer],
      bearer_methods_supported: ['header'],
    },
    parameter: `resource_metadata="${url}"`,
  };
}
