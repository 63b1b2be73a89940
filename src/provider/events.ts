/** Reports the engine's requests to the log, the metrics and the client's owner. */
import type { Context, Next } from 'koa';
import type Provider from 'oidc-provider';
import type { KoaContextWithOIDC } from 'oidc-provider';
import type { Logger } from 'pino';
import type { ClientRequests } from '../clients/client-requests.ts';
import { StorageUnavailable } from '../storage/storage-unavailable.ts';
import type { ProviderOutcomes } from './outcomes.ts';
import { authorizationProblem, causeOf, type EngineError } from './request-problem.ts';

interface Listeners {
  readonly log: Logger;
  readonly requests: Pick<ClientRequests, 'record'>;
  readonly outcomes: Pick<ProviderOutcomes, 'authorizationIssued' | 'authorizationRefused'>;
}

export function listenToEvents(provider: Provider, parts: Listeners): void {
  const { log, requests, outcomes } = parts;
  const about = (ctx: KoaContextWithOIDC) => ({
    requestId: ctx.state.requestId,
    clientId: ctx.oidc.client?.clientId,
  });

  provider.on('authorization.success', () => outcomes.authorizationIssued());
  provider.on('authorization.error', (ctx, error) => {
    outcomes.authorizationRefused(error.message);
    log.info({ ...about(ctx), error: error.message, cause: loggedCause(error) }, 'authorization refused');
    requests.record(authorizationProblem(ctx, error));
  });
  provider.on('server_error', (ctx, error) => {
    log.error({ ...about(ctx), err: error }, 'request failed');
  });
}

/** Returns the cause for the log. Clients never get the message of an unavailable store. */
const loggedCause = (error: EngineError): string =>
  error instanceof StorageUnavailable ? error.reason : causeOf(error);

/** Step that runs the engine, and then stores the ids of client, authorization and account for the log line. */
export async function nameParties(ctx: Context & Partial<Pick<KoaContextWithOIDC, 'oidc'>>, next: Next): Promise<void> {
  try {
    await next();
  } finally {
    // Log only ids that were found, never values that the request sent.
    const { client, session, entities } = ctx.oidc ?? {};
    const accountId = entities?.Grant?.accountId ?? session?.accountId;
    if (client) ctx.state.clientId = client.clientId;
    if (entities?.Grant) ctx.state.authorizationId = entities.Grant.jti;
    if (accountId !== undefined) ctx.state.accountId = accountId;
  }
}
