/** Describes a refused authorize or token request for the owner of its client. */
import type { Context } from 'koa';
import type { KoaContextWithOIDC } from 'oidc-provider';
import { isClientId } from '../base/random-id.ts';
import type { ClientRequest, SeenAuthMethod } from '../clients/client-requests.ts';
import { findValidSecret } from './client-authentication.ts';
import { findForm } from './form.ts';

/**
 * Returns the exact cause of an engine error, for the owner of the client and the operator's log.
 * It never contains a code, token or secret.
 */
export const causeOf = (error: EngineError): string => error.error_detail ?? error.error_description ?? error.message;

export interface EngineError extends Error {
  readonly error_description?: string | undefined;
  readonly error_detail?: string | undefined;
}

/** Describes a refused authorize request. @returns undefined without a well-formed client id */
export function authorizationProblem(ctx: KoaContextWithOIDC, error: Error): ClientRequest | undefined {
  const { client, params } = ctx.oidc;
  return problemOf(client?.clientId ?? params?.client_id, {
    step: 'authorize',
    error: error.message,
    // If the engine finds no client, it is suspended: problems of unknown clients are dropped.
    cause: client ? causeOf(error) : causeOf(error).replace(/^client not found$/, SUSPENDED),
    requestId: ctx.state.requestId,
    redirectUri: params?.redirect_uri,
    isFromClient: client?.redirectUriAllowed(String(params?.redirect_uri)) ?? false,
    // Read the raw query: the engine removes unknown scopes from its parameters.
    scope: ctx.query.scope,
  });
}

/** Describes a refused token request. @returns undefined without a well-formed client id */
export function tokenProblem(ctx: Context, error: string, cause: string): ClientRequest | undefined {
  const form = findForm(ctx);
  const [, encoded] = BASIC.exec(ctx.get('authorization')) ?? [];
  const [idInHeader] = Buffer.from(encoded ?? '', 'base64')
    .toString()
    .split(':');
  return problemOf(form?.get('client_id') || idInHeader, {
    step: 'token',
    error,
    cause,
    requestId: ctx.state.requestId,
    redirectUri: form?.get('redirect_uri'),
    scope: form?.get('scope'),
    isFromClient: findValidSecret(ctx) !== undefined,
    authMethod: methodOf(encoded !== undefined, Boolean(form?.get('client_secret'))),
  });
}

function problemOf(
  clientId: unknown,
  {
    redirectUri,
    scope,
    ...known
  }: Omit<ClientRequest, 'clientId' | 'redirectUri' | 'scope'> & {
    readonly redirectUri: unknown;
    readonly scope: unknown;
  },
): ClientRequest | undefined {
  if (typeof clientId !== 'string' || !isClientId(clientId)) return undefined;
  return {
    clientId,
    ...known,
    ...(typeof redirectUri === 'string' && { redirectUri }),
    ...(typeof scope === 'string' && scope && { scope }),
  };
}

function methodOf(isInHeader: boolean, isInBody: boolean): SeenAuthMethod {
  if (isInHeader && isInBody) return 'both';
  if (isInHeader) return 'basic';
  return isInBody ? 'body' : 'none';
}

const SUSPENDED = 'the client is suspended';
const BASIC = /^basic +(\S*)/i;
