/** The issuer: the one public origin of the service. */
import { isIP } from 'node:net';
import { hasHost } from './urls.ts';

/** True if the host of this origin is `localhost`, in 127.0.0.0/8 or `[::1]`. */
export function isLoopbackOrigin(issuer: string): boolean {
  if (!URL.canParse(issuer)) return false;
  const { hostname } = new URL(issuer);
  return hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d+){3}$/.test(hostname);
}

/** False for an IP address: passkeys belong to a domain (Web Authentication §5.1.2). */
export function mayHavePasskeys(issuer: string): boolean {
  if (!URL.canParse(issuer)) return false;
  const { hostname } = new URL(issuer);
  return !hostname.startsWith('[') && isIP(hostname) === 0;
}

/**
 * Returns what is wrong with an issuer, and the remedy. Clients (RFC 9207 §2.4) and the check of the Host header
 * compare the issuer as text. So only the exact form that browsers send is accepted, and other forms are not corrected.
 * RFC 8414 §2 requires https, no query and no fragment.
 */
export function issuerProblem(issuer: string): { message: string; remedy: string } | undefined {
  const example = 'write the public origin, such as `https://auth.example.com`';
  if (!URL.canParse(issuer)) return { message: 'is not a URL', remedy: example };
  const { protocol, origin, username, password } = new URL(issuer);
  if (protocol !== 'https:' && protocol !== 'http:') {
    return { message: 'is not an https URL', remedy: example };
  }
  if (username !== '' || password !== '') {
    return { message: 'contains a user name or password', remedy: `write \`${origin}\`` };
  }
  if (protocol === 'http:' && !isLoopbackOrigin(issuer)) {
    return {
      message: 'is http on a host that is not loopback: passwords and tokens would be sent unencrypted',
      remedy: `put a TLS proxy in front and write \`${origin.replace('http:', 'https:')}\``,
    };
  }
  if (!hasHost(issuer)) return { message: 'has no host', remedy: example };
  if (origin !== issuer) {
    return {
      message: 'is more than an origin, or not in its normalized form',
      remedy: `write \`${origin}\`: scheme, host in lower case, and the port only if it is not the default`,
    };
  }
  return undefined;
}

/**
 * Returns what is wrong with the issuer of a sign-in provider. Unlike Gatehouse's own issuer, it may have a path. Its
 * discovery document defines the exact spelling (OpenID Connect Discovery §4.3).
 */
export function upstreamIssuerProblem(issuer: string): string | undefined {
  if (!URL.canParse(issuer) || issuer.trim() !== issuer) return 'is not a URL';
  const { protocol, username, password } = new URL(issuer);
  if (username !== '' || password !== '') return 'contains a user name or password';
  if (!hasHost(issuer)) return 'has no host';
  // OpenID Connect Core §2 allows no query or fragment in `iss`.
  if (/[?#]/.test(issuer)) return 'has a query or a fragment';
  if (protocol === 'https:' || (protocol === 'http:' && isLoopbackOrigin(issuer))) return undefined;
  return 'is not an https URL';
}
