/** Everything the engine reports that we listen to, in one place. */
import type Provider from 'oidc-provider';
import type { KoaContextWithOIDC } from 'oidc-provider';
import type { Logger } from 'pino';
import type { ClientProblems } from '../clients/client-problems.ts';
import type { LastUsed } from '../storage/last-used.ts';
import { StorageUnavailable } from '../storage/storage-unavailable.ts';
import type { ProviderOutcomes } from './outcomes.ts';
import { requestProblem } from './request-problem.ts';
import { causeOf, describeTokenError } from './token-errors.ts';

export interface Listeners {
  readonly log: Logger;
  readonly problems: Pick<ClientProblems, 'note'>;
  readonly lastUsed: Pick<LastUsed<'client'>, 'note'>;
  readonly outcomes: ProviderOutcomes;
}

/**
 * Corrects refused token answers, logs what was refused and notes it for the client's owner. The
 * engine sets the body first and reports after it in the same tick, so a listener may complete it.
 */
export function listenToEvents(provider: Provider, parts: Listeners): void {
  const { log, problems, lastUsed, outcomes } = parts;
  const about = (ctx: KoaContextWithOIDC) => ({
    requestId: ctx.state.requestId,
    clientId: ctx.oidc.client?.clientId,
  });

  const note = (ctx: KoaContextWithOIDC, step: 'authorize' | 'token', error: Error): void => {
    const problem = requestProblem(ctx, step, error);
    if (problem) problems.note(problem);
  };

  provider.on('grant.success', (ctx) => {
    outcomes.tokenIssued(String(ctx.oidc.params?.grant_type));
    if (ctx.oidc.client) lastUsed.note('client', ctx.oidc.client.clientId);
  });
  provider.on('grant.error', (ctx, error) => {
    describeTokenError(ctx, error);
    outcomes.tokenRefused(String(ctx.oidc.params?.grant_type), error.message);
    log.info({ ...about(ctx), error: error.message, cause: loggedCause(error) }, 'token refused');
    note(ctx, 'token', error);
  });
  provider.on('authorization.success', () => outcomes.authorizationIssued());
  provider.on('authorization.error', (ctx, error) => {
    outcomes.authorizationRefused(error.message);
    log.info(
      { ...about(ctx), error: error.message, cause: loggedCause(error) },
      'authorization refused',
    );
    note(ctx, 'authorize', error);
  });
  provider.on('server_error', (ctx, error) => {
    log.error({ ...about(ctx), err: error }, 'request failed');
  });
}

/** A store's own words are for operators only. */
const loggedCause = (error: Parameters<typeof causeOf>[0]): string =>
  error instanceof StorageUnavailable ? error.reason : causeOf(error);
