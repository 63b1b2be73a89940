/** Metadata by which clients discover how an API is protected (RFC 9728). */

export interface ProtectedResource {
  /** The address of the document, for GET without credentials (RFC 9728 §3.1). */
  readonly url: string;
  readonly path: string;
  /** The document to serve at `url` as `application/json`. */
  readonly document: {
    readonly resource: string;
    readonly authorization_servers: readonly string[];
    readonly bearer_methods_supported: readonly string[];
  };
  /** The parameter for challenges (RFC 9728 §5.1); an introspector with the option `resource` adds it. */
  readonly parameter: string;
}

const WELL_KNOWN = '/.well-known/oauth-protected-resource';

/**
 * @param resource the API's address, as its callers know it.
 * @throws TypeError if `resource` is no http or https URL, or has a fragment (RFC 9728 §1.2).
 */
export function protectedResourceMetadata(parts: {
  readonly resource: string;
  readonly issuer: string;
}): ProtectedResource {
  const { resource, issuer } = parts;
  const address = URL.canParse(resource) ? new URL(resource) : undefined;
  if (!address || !['http:', 'https:'].includes(address.protocol) || resource.includes('#')) {
    throw new TypeError('resource must be an http or https URL without a fragment');
  }
  // RFC 9728 §3.1: insert the well-known path between host and path; omit a path of only a slash.
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
