/** Describes a refused authorize or token request for the owner of its client. */
import type { Context } from 'koa';
import type { errors, KoaContextWithOIDC } from 'oidc-provider';
import type { ClientRequest, SeenAuthMethod } from '../clients/client-requests.ts';
import { findValidSecret } from './client-authentication.ts';
import { findForm } from './form.ts';

/** The exact cause, for the owner of the client and the operator's log. It contains no code, token or secret. */
export const causeOf = (error: EngineError): string => error.error_detail ?? error.error_description ?? error.message;

export type EngineError = Error & Partial<Pick<errors.OIDCProviderError, 'error_description' | 'error_detail'>>;

export function authorizationProblem(ctx: KoaContextWithOIDC, error: Error): ClientRequest {
  const { client, params } = ctx.oidc;
  return {
    clientId: textOf(client?.clientId ?? params?.client_id) ?? '',
    step: 'authorize',
    error: error.message,
    // A client that the engine does not find is suspended, or does not exist: then the problem is dropped later.
    cause: client ? causeOf(error) : causeOf(error).replace(/^client not found$/, 'the client is suspended'),
    requestId: ctx.state.requestId,
    redirectUri: textOf(params?.redirect_uri),
    isFromClient: client?.redirectUriAllowed(String(params?.redirect_uri)) ?? false,
    // Read the raw query: the engine removes unknown scopes from its parameters.
    scope: textOf(ctx.query.scope),
  };
}

export function tokenProblem(ctx: Context, error: string, cause: string): ClientRequest {
  const form = findForm(ctx);
  const [, encoded] = /^basic +(\S*)/i.exec(ctx.get('authorization')) ?? [];
  const [idInHeader = ''] = `${Buffer.from(encoded ?? '', 'base64')}`.split(':');
  return {
    clientId: form?.get('client_id') || idInHeader,
    step: 'token',
    grantType: form?.get('grant_type') || undefined,
    error,
    cause,
    requestId: ctx.state.requestId,
    redirectUri: textOf(form?.get('redirect_uri')),
    scope: textOf(form?.get('scope')),
    isFromClient: findValidSecret(ctx) !== undefined,
    authMethod: methodOf(encoded !== undefined, Boolean(form?.get('client_secret'))),
  };
}

/** Returns a parameter; undefined if it is absent, or repeated, because the engine returns an array for it. */
const textOf = (value: unknown): string | undefined => (typeof value === 'string' && value ? value : undefined);

function methodOf(isInHeader: boolean, isInBody: boolean): SeenAuthMethod {
  if (isInBody) return isInHeader ? 'both' : 'body';
  return isInHeader ? 'basic' : 'none';
}
