/** A refused authorize or token request, as the owner of its client is told of it. */
import type { KoaContextWithOIDC } from 'oidc-provider';
import type { NewClientProblem, SeenAuthMethod } from '../clients/client-problems.ts';
import { isClientId } from '../random-id.ts';
import { causeOf } from './token-errors.ts';

/**
 * @returns undefined when the request names no client that could be one.
 */
export function requestProblem(
  ctx: KoaContextWithOIDC,
  step: NewClientProblem['step'],
  error: Error,
): NewClientProblem | undefined {
  const { client, params } = ctx.oidc;
  const clientId = client?.clientId ?? namedClient(ctx);
  if (clientId === undefined || !isClientId(clientId)) return undefined;
  const redirectUri = params?.redirect_uri;
  // The engine drops from its parameters what it does not know.
  const scope = ctx.oidc.body?.scope ?? ctx.query.scope;
  return {
    clientId,
    step,
    error: error.message,
    // Not found, and yet it is a client: problems of unknown ones are dropped.
    cause: client ? causeOf(error) : causeOf(error).replace(/^client not found$/, SUSPENDED),
    requestId: ctx.state.requestId,
    ...(typeof redirectUri === 'string' && { redirectUri }),
    ...(typeof scope === 'string' && scope && { scope }),
    ...(step === 'token' && { authMethod: authMethodOf(ctx) }),
  };
}

/** The client of a request that was refused before the client was looked for, or found. */
export function namedClient(ctx: KoaContextWithOIDC): string | undefined {
  const id = ctx.oidc.params?.client_id ?? ctx.oidc.body?.client_id;
  if (typeof id === 'string') return id;
  const [, encoded = ''] = BASIC.exec(ctx.get('authorization')) ?? [];
  return Buffer.from(encoded, 'base64').toString().split(':')[0];
}

function authMethodOf(ctx: KoaContextWithOIDC): SeenAuthMethod {
  const isInHeader = BASIC.test(ctx.get('authorization'));
  const isInBody = Boolean(ctx.oidc.body?.client_secret);
  if (isInHeader && isInBody) return 'both';
  if (isInHeader) return 'basic';
  return isInBody ? 'body' : 'none';
}

const SUSPENDED = 'the client is suspended';
const BASIC = /^basic +(\S*)/i;
