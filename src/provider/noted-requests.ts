/** Requests of a client that the engine does not answer, told to its owner while they happen. */
import type { Middleware } from 'koa';
import type { ClientRequests } from '../clients/client-requests.ts';
import { OAuthError } from './oauth-error.ts';

/** Route step, before those that find out whose request it is. */
export function noteRevocation(requests: Pick<ClientRequests, 'note'>): Middleware {
  return async function noteRequest(ctx, next) {
    const note = (refused?: OAuthError): void => {
      const { clientId, requestId } = ctx.state;
      if (clientId === undefined) return;
      const told = refused && { error: refused.code, cause: refused.description };
      requests.note({ clientId, requestId, step: 'revoke', ...told });
    };
    try {
      await next();
      note();
    } catch (error) {
      if (error instanceof OAuthError) note(error);
      throw error;
    }
  };
}
