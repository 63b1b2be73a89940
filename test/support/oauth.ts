/** Single OAuth requests, for tests that check the raw answer; other tests use real libraries. */
import { createHash, randomBytes } from 'node:crypto';

/** A client's credentials, as returned by its registration. */
export interface TestClient {
  readonly id: string;
  readonly secret?: string;
  readonly redirectUri: string;
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  /** The JSON object of the body, or an empty one. */
  readonly body: Readonly<Record<string, unknown>>;
  readonly text: string;
}

/** A parameter that is undefined is left out. */
export type Parameters = Readonly<Record<string, string | undefined>>;

/** Returns the URL of an authorization request; `parameters` replace or remove the usual ones. */
export function authorizationUrl(issuer: string, client: TestClient, parameters: Parameters = {}): URL {
  const url = new URL('/oauth/authorize', issuer);
  const usual = {
    response_type: 'code',
    client_id: client.id,
    redirect_uri: client.redirectUri,
    state: 'state-of-the-partner',
  };
  url.search = encode({ ...usual, ...parameters }).toString();
  return url;
}

/** Returns the PKCE parameters (RFC 7636) of the authorization request and of the exchange. */
export function pkce(): {
  verifier: string;
  parameters: { code_challenge: string; code_challenge_method: string };
} {
  const verifier = randomBytes(32).toString('base64url');
  const code_challenge = createHash('sha256').update(verifier).digest('base64url');
  return { verifier, parameters: { code_challenge, code_challenge_method: 'S256' } };
}

/** Sends a form with POST, with the client's secret in the form or in a Basic header. */
export function postForm(
  issuer: string,
  path: string,
  parameters: Parameters,
  { client, by = 'body' }: { client?: TestClient | undefined; by?: 'body' | 'basic' } = {},
): Promise<Answer> {
  const inBody = client && by === 'body' ? { client_id: client.id, client_secret: client.secret } : {};
  const headers: Record<string, string> = {};
  if (client && by === 'basic') headers.authorization = basic(client);
  const body = encode({ ...inBody, ...parameters });
  return ask(new URL(path, issuer), { method: 'POST', headers, body });
}

/**
 * The Basic header of a client, without the escaping of RFC 6749 §2.3.1: Gatehouse promises that its values need none.
 */
export const basic = ({ id, secret = '' }: TestClient): string =>
  `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}`;

export const exchangeCode = (
  issuer: string,
  client: TestClient,
  code: string,
  parameters: Parameters = {},
): Promise<Answer> => {
  const usual = { grant_type: 'authorization_code', code, redirect_uri: client.redirectUri };
  return postForm(issuer, '/oauth/token', { ...usual, ...parameters }, { client });
};

export const refresh = (
  issuer: string,
  client: TestClient,
  refreshToken: string,
  parameters: Parameters = {},
): Promise<Answer> => {
  const usual = { grant_type: 'refresh_token', refresh_token: refreshToken };
  return postForm(issuer, '/oauth/token', { ...usual, ...parameters }, { client });
};

export const clientCredentials = (issuer: string, client: TestClient, parameters: Parameters = {}): Promise<Answer> =>
  postForm(issuer, '/oauth/token', { grant_type: 'client_credentials', ...parameters }, { client });

export const introspect = (issuer: string, client: TestClient, token: string): Promise<Answer> =>
  postForm(issuer, '/oauth/introspect', { token }, { client, by: 'basic' });

/** `POST /oauth/token/revoke`: revokes the presented token with its authorization. */
export const revokeCurrent = (issuer: string, accessToken: string): Promise<Answer> =>
  ask(new URL('/oauth/token/revoke', issuer), {
    method: 'POST',
    headers: { authorization: `Bearer ${accessToken}` },
  });

export async function ask(url: URL, init: RequestInit): Promise<Answer> {
  const response = await fetch(url, { redirect: 'manual', ...init });
  const text = await response.text();
  const isJson = response.headers.get('content-type')?.includes('json') ?? false;
  const body = isJson && text !== '' ? (JSON.parse(text) as Answer['body']) : {};
  return { status: response.status, headers: response.headers, body, text };
}

function encode(parameters: Parameters): URLSearchParams {
  const present = Object.entries(parameters).filter((entry): entry is [string, string] => {
    return entry[1] !== undefined;
  });
  return new URLSearchParams(present);
}
