/** `/profile/oauth-clients/:id/requests`: what a client asks for, told to its owner while it happens. */
import type { Context } from 'koa';
import type { ClientRequest } from '../../clients/client-requests.ts';
import type { OwnedClient } from '../../clients/owned-clients.ts';
import { isAliveFor } from '../page.ts';
import { get, type PageParts, type Route } from '../routes.ts';
import { accountOf } from '../signed-in.ts';
import { momentOf } from '../words/moment.ts';
import type { ShownRequest } from './client-view.ts';
import { CLIENT, type OwnClientSteps, ownClientOf, urlOf } from './own-client.ts';

export const requestsUrlOf = (client: Pick<OwnedClient, 'id'>): string =>
  `${urlOf(client)}/requests`;

export function requestRoutes(parts: PageParts, own: OwnClientSteps): Route[] {
  const { clients, requestStreams, clientRequests } = parts;

  async function openStream(ctx: Context): Promise<void> {
    const { id: clientId } = ownClientOf(ctx);
    const { id: accountId } = accountOf(ctx);
    await clientRequests.watch(clientId);
    const stream =
      ctx.method === 'HEAD'
        ? ''
        : requestStreams.open({
            clientId,
            accountId,
            shown: shownRequest,
            async isStillTheirs() {
              const client = await clients.find(clientId);
              return client?.ownerAccountId === accountId && isAliveFor(ctx, accountId, parts);
            },
          });
    if (stream === undefined) ctx.throw(503, 'no stream of requests now');
    ctx.type = 'text/event-stream';
    // A proxy that compresses or collects it would hold the heartbeat back.
    ctx.set('Cache-Control', 'no-store, no-transform');
    ctx.set('X-Accel-Buffering', 'no');
    // Or the connection of a stream that ended with its node would be waited for.
    ctx.set('Connection', 'close');
    ctx.body = stream;
  }

  return [get(`${CLIENT}/requests`, ...own.page, openStream)];
}

const STEPS = { authorize: 'Authorize', token: 'Token', revoke: 'Revoke' } as const;
/** Of what went well. */
const OUTCOMES = { authorize: 'code sent', token: 'tokens issued', revoke: 'revoked' } as const;

/** In the words of the page. */
export const shownRequest = (request: ClientRequest): ShownRequest => ({
  at: momentOf(new Date(request.at)),
  time: new Date(request.at).toISOString().slice(11, 19),
  step: request.grantType ? `${STEPS[request.step]} ${request.grantType}` : STEPS[request.step],
  outcome: request.error ?? OUTCOMES[request.step],
  isRefused: request.error !== undefined,
  cause: request.cause === request.error ? '' : (request.cause ?? ''),
  requestId: request.requestId,
});
