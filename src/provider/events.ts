/** Everything the engine reports that we listen to, in one place. */
import type Provider from 'oidc-provider';
import type { KoaContextWithOIDC } from 'oidc-provider';
import type { Logger } from 'pino';
import { causeOf, describeTokenError } from './token-errors.ts';

/**
 * Corrects refused token answers and logs what was refused. The engine sets the body first and
 * reports after it in the same tick, so a listener may complete it.
 */
export function listenToEvents(provider: Provider, log: Logger): void {
  const about = (ctx: KoaContextWithOIDC) => ({
    requestId: ctx.state.requestId,
    clientId: ctx.oidc.client?.clientId,
  });

  provider.on('grant.error', (ctx, error) => {
    describeTokenError(ctx, error);
    log.info({ ...about(ctx), error: error.message, cause: causeOf(error) }, 'token refused');
  });
  provider.on('authorization.error', (ctx, error) => {
    log.info(
      { ...about(ctx), error: error.message, cause: causeOf(error) },
      'authorization refused',
    );
  });
  provider.on('grant.revoked', (ctx) => {
    log.warn(about(ctx), 'a code or refresh token was replayed: its grant is revoked');
  });
  provider.on('server_error', (ctx, error) => {
    log.error({ ...about(ctx), err: error }, 'request failed');
  });
}
