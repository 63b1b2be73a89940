/** `POST /oauth/token` (RFC 6749 §3.2): checks a request before its grant is handled, and creates error responses. */
import type { Context } from 'koa';
import type { Answer, NextStep, Step } from '../base/answer.ts';
import type { Client } from '../clients/client.ts';
import type { ClientRequests } from '../clients/client-requests.ts';
import type { LastUsed } from '../storage/last-used.ts';
import { StorageUnavailable } from '../storage/storage-unavailable.ts';
import { authenticatedClient, type ClientAuthentication, findAuthenticatedClient } from './client-authentication.ts';
import { allowPages } from './cross-origin.ts';
import { type FailureLimits, TooManyFailures } from './failure-limits.ts';
import { CONTENT_TYPE, findForm, formOf, readOAuthForm } from './form.ts';
import { NO_SCOPES, OAuthError } from './oauth-error.ts';
import type { ProviderOutcomes } from './outcomes.ts';
import { tokenProblem } from './request-problem.ts';
import { GRANTS, type Grant, type TokenGrantParts } from './token-grants.ts';

interface TokenEndpointParts extends TokenGrantParts {
  readonly authentication: ClientAuthentication;
  readonly failures: Pick<FailureLimits, 'answerOf'>;
  readonly requests: Pick<ClientRequests, 'record'>;
  readonly lastUsed: Pick<LastUsed<'client'>, 'record'>;
  readonly outcomes: TokenGrantParts['outcomes'] & Pick<ProviderOutcomes, 'tokenIssued' | 'tokenRefused'>;
}

const GRANT_TYPES: Record<Client['kind'], readonly string[]> = {
  confidential: ['authorization_code', 'refresh_token'],
  public: ['authorization_code', 'refresh_token'],
  machine: ['client_credentials'],
  'resource-server': [],
};

export function tokenEndpoint(parts: TokenEndpointParts): Step[] {
  const { authentication, outcomes, lastUsed } = parts;
  return [
    allowPages,
    async function tellRefusal(ctx, next) {
      try {
        return await next();
      } catch (error) {
        ctx.set('Pragma', 'no-cache');
        throw await answerTo(error, ctx, parts);
      }
    },
    requireContentType,
    readOAuthForm,
    authentication.requireClient,
    async function issueTokens(ctx) {
      const client = authenticatedClient(ctx);
      const form = formOf(ctx);
      const grantType = requireGrantType(client, form);
      const grant: Grant = GRANTS[grantType];
      const body = await grant(parts, client, form, ctx);
      outcomes.tokenIssued(grantType);
      lastUsed.record('client', client.id);
      // RFC 6749 §5.1 requires this header.
      return { headers: { Pragma: 'no-cache' }, body };
    },
  ];
}

function requireContentType(ctx: Context, next: NextStep): Promise<Answer> {
  if (ctx.req.headers['content-type']) return next();
  const description = `the body must be ${CONTENT_TYPE}, and Content-Type must say so`;
  throw new OAuthError(400, 'invalid_request', description);
}

/** Refuses a wrong grant type before a code or token is used, so that nothing is consumed. */
function requireGrantType({ kind }: Client, form: URLSearchParams): keyof typeof GRANTS {
  const grantType = form.get('grant_type');
  if (!grantType) {
    throw new OAuthError(400, 'invalid_request', "missing required parameter 'grant_type'");
  }
  if (!isGrantType(grantType)) {
    throw new OAuthError(400, 'unsupported_grant_type', 'there is no such grant_type');
  }
  if (!GRANT_TYPES[kind].includes(grantType)) {
    const description = `this client may not use grant_type ${grantType}`;
    throw new OAuthError(400, 'unauthorized_client', description);
  }
  if (form.get('scope')) throw new OAuthError(400, 'invalid_scope', NO_SCOPES);
  return grantType;
}

const isGrantType = (text: string): text is keyof typeof GRANTS => Object.hasOwn(GRANTS, text);

/** Counts and records the refusal. @returns the error to send, with its cause if the client's secret was correct */
async function answerTo(error: unknown, ctx: Context, parts: TokenEndpointParts): Promise<unknown> {
  const { failures, outcomes, requests, log } = parts;
  const refusal = error instanceof TooManyFailures ? error.refusal : error;
  // Any other error is a bug or a failure of this service.
  if (!(refusal instanceof OAuthError || refusal instanceof StorageUnavailable)) return error;
  const { requestId, clientId } = ctx.state;
  const isAway = refusal instanceof StorageUnavailable;
  const code = isAway ? refusal.error : refusal.code;
  const grantType = findForm(ctx)?.get('grant_type') ?? '';
  outcomes.tokenRefused(grantType, code);
  // The message of the store itself is for operators only.
  const cause = isAway ? refusal.reason : refusal.internalCause;
  log.info({ requestId, clientId, error: code, cause }, 'token refused');
  requests.record(tokenProblem(ctx, code, isAway ? refusal.error_description : refusal.internalCause));

  const client = findAuthenticatedClient(ctx);
  if (!client || isAway) return error;
  if (client.kind !== 'public') {
    return new OAuthError(refusal.status, refusal.code, refusal.internalCause, refusal.headers);
  }
  // Limit invalid codes and refresh tokens of public clients: they may be guesses. Do not limit a client with a secret:
  // it is authenticated, and many of its users may have old tokens.
  return refusal.code === 'invalid_grant' ? failures.answerOf(ctx, refusal, client.id) : error;
}
