/** `GET /oauth/verify`: a reverse proxy asks who calls an API (forward authentication). */
import type { Context } from 'koa';
import type { Answer, Step } from '../base/answer.ts';
import { describeToken, type IntrospectionParts } from './introspection.ts';
import { OAuthError } from './oauth-error.ts';
import { bearerOf } from './revocation.ts';

/** Like introspection, but the answer is in headers, which a proxy sends on to the API. See docs/forward-auth.md. */
export function verification(parts: IntrospectionParts): Step[] {
  return [
    parts.authentication.requireProxy,
    async function answerVerification(ctx) {
      if (isPreflight(ctx)) return letPass({});
      const value = bearerOf(ctx);
      if (!value) throw refusal('an access token or API key is required', 'Bearer');
      const answer = await describeToken(value, ctx, parts);
      parts.outcomes.introspected(answer !== undefined);
      if (!answer) throw refusal('the access token or API key is unknown, expired or revoked');
      const { sub, client_id: clientId, organizations = [] } = answer;
      return letPass({ sub, clientId, organizations: inHeader(organizations) });
    },
  ];
}

/** Sends every header, even if empty: Caddy 2.6 forwards its own placeholder if a header is absent. */
function letPass({
  sub = '',
  clientId = '',
  organizations = '',
}: Readonly<Record<string, string | undefined>>): Answer {
  const headers = {
    'X-Gatehouse-Sub': sub,
    'X-Gatehouse-Client': clientId,
    'X-Gatehouse-Organizations': organizations,
  };
  return { headers, body: '' };
}

/**
 * Browsers send a CORS preflight without credentials (Fetch §4.8), so it passes without a token. The proxy sends the
 * method of the request that it received in `X-Forwarded-Method`.
 */
const isPreflight = (ctx: Context): boolean =>
  ctx.get('x-forwarded-method') === 'OPTIONS' &&
  ctx.get('access-control-request-method') !== '' &&
  ctx.get('authorization') === '';

/** In base64url, this many bytes take 4 kB. Proxies limit the headers of a response, often to 8 kB in total. */
const MAX_JSON_BYTES = 3_072;
/** The last element of a list that is cut. To get all organizations, the API introspects the token. */
const MORE = JSON.stringify({ more: true });

function inHeader(organizations: readonly object[]): string {
  const elements = organizations.map((organization) => JSON.stringify(organization));
  let bytes = '[]'.length + MORE.length;
  const kept = elements.findIndex((element) => {
    bytes += Buffer.byteLength(element) + ','.length;
    return bytes > MAX_JSON_BYTES;
  });
  const sent = kept < 0 ? elements : [...elements.slice(0, kept), MORE];
  return Buffer.from(`[${sent.join()}]`).toString('base64url');
}

/** The status is always 401, because nginx passes no other refusal on to its caller. */
const refusal = (
  description: string,
  challenge = `Bearer error="invalid_token", error_description="${description}"`,
): OAuthError => new OAuthError(401, 'invalid_token', description, { 'WWW-Authenticate': challenge });
