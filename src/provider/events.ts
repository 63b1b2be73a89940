/** Everything the engine reports that we listen to, in one place. */
import type Provider from 'oidc-provider';
import type { KoaContextWithOIDC } from 'oidc-provider';
import type { Logger } from 'pino';
import type { ClientProblems } from '../clients/client-problems.ts';
import type { LastUsed } from '../storage/last-used.ts';
import { requestProblem } from './request-problem.ts';
import { causeOf, describeTokenError } from './token-errors.ts';

export interface Listeners {
  readonly log: Logger;
  readonly problems: Pick<ClientProblems, 'note'>;
  readonly lastUsed: Pick<LastUsed<'client'>, 'note'>;
}

/**
 * Corrects refused token answers, logs what was refused and notes it for the client's owner. The
 * engine sets the body first and reports after it in the same tick, so a listener may complete it.
 */
export function listenToEvents(provider: Provider, { log, problems, lastUsed }: Listeners): void {
  const about = (ctx: KoaContextWithOIDC) => ({
    requestId: ctx.state.requestId,
    clientId: ctx.oidc.client?.clientId,
  });

  const note = (ctx: KoaContextWithOIDC, step: 'authorize' | 'token', error: Error): void => {
    const problem = requestProblem(ctx, step, error);
    if (problem) problems.note(problem);
  };

  provider.on('grant.success', (ctx) => {
    if (ctx.oidc.client) lastUsed.note('client', ctx.oidc.client.clientId);
  });
  provider.on('grant.error', (ctx, error) => {
    describeTokenError(ctx, error);
    log.info({ ...about(ctx), error: error.message, cause: causeOf(error) }, 'token refused');
    note(ctx, 'token', error);
  });
  provider.on('authorization.error', (ctx, error) => {
    log.info(
      { ...about(ctx), error: error.message, cause: causeOf(error) },
      'authorization refused',
    );
    note(ctx, 'authorize', error);
  });
  provider.on('grant.revoked', (ctx) => {
    log.warn(about(ctx), 'a code or refresh token was replayed: its grant is revoked');
  });
  provider.on('server_error', (ctx, error) => {
    log.error({ ...about(ctx), err: error }, 'request failed');
  });
}
