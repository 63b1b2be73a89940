/** `/profile/oauth-clients/:id`: shows a client of the user, and streams its requests. */
import type { Context } from 'koa';
import { message } from '../../base/message.ts';
import { redirectsPeople } from '../../clients/client.ts';
import type { ClientRegistry } from '../../clients/client-registry.ts';
import type { ClientRequests, LoggedRequest } from '../../clients/client-requests.ts';
import { formerSecretsOf, type OwnedClient, shownPeople } from '../../clients/client-row.ts';
import type { RequestStreams } from '../../clients/request-streams.ts';
import type { Texts } from '../../texts/texts.ts';
import type { PageKit } from '../page-kit.ts';
import { get, type Route } from '../routes.ts';
import { accountOf } from '../signed-in.ts';
import { momentOrNothing, timeOfDay, toMoment } from '../words/moment.ts';
import { CLIENT, type OwnClientPages, ownClientOf, urlOf } from './own-client.ts';

export function clientPage(parts: {
  readonly kit: PageKit;
  readonly own: OwnClientPages;
  readonly clientRequests: ClientRequests;
}): Route[] {
  const { kit, own, clientRequests } = parts;

  async function show(ctx: Context): Promise<void> {
    const client = ownClientOf(ctx);
    await clientRequests.watch(client.id);
    // Call `groups` before `tail`, because it also writes the requests that are still queued.
    const groups = await clientRequests.groups(client.id);
    const [latest, ...others] = groups.filter(({ isMended }) => !isMended);
    const tail = await clientRequests.tail(client.id);
    // Look at the latest requests as well, because `lastUsedAt` is stored up to some minutes after a use.
    const usedNow = tail.find(isUse)?.at;
    const isLater = usedNow && (client.lastUsedAt === undefined || client.lastUsedAt < usedNow);
    await kit.render(ctx, 'oauth-client', {
      head: await own.head(ctx, 'overview'),
      notice: await kit.notices.take(ctx),
      client: {
        id: client.id,
        created: toMoment(client.createdAt),
        connectedPeople: message('oauth-clients.people-count', shownPeople(client.connectedPeople)),
        lastUsed: momentOrNothing(isLater ? usedNow : client.lastUsedAt),
        ownedSince: momentOrNothing(client.ownedSince),
        formerSecrets: formerSecretsOf(client).length,
        redirectUris: client.redirectUris,
        verified: momentOrNothing(client.verifiedAt),
        isForPeople: redirectsPeople(client.kind),
        lastDay: await clientRequests.lastDay(client.id),
      },
      secretsUrl: urlOf(client, 'secrets'),
      connectUrl: urlOf(client, 'connect'),
      settingsUrl: urlOf(client, 'settings'),
      problems: latest && {
        url: urlOf(client, 'problems'),
        latest: { error: latest.error, cause: latest.cause, last: toMoment(latest.at) },
        others: others.length,
      },
      requests: tail.map(shownRequest(kit.textsFor(ctx))),
      requestsUrl: requestsUrlOf(client),
    });
  }

  return [get(CLIENT, ...own.page, show)];
}

const requestsUrlOf = (client: Pick<OwnedClient, 'id'>): string => `${urlOf(client)}/requests`;

export function clientRequestsPage(parts: {
  readonly kit: Pick<PageKit, 'textsFor'>;
  readonly own: OwnClientPages;
  readonly clients: ClientRegistry;
  readonly clientRequests: ClientRequests;
  readonly requestStreams: RequestStreams;
  /** Reads the session again, because a stream may be open longer than the session is active. */
  isStillSignedIn(ctx: Context, accountId: string): Promise<boolean>;
}): Route[] {
  const { kit, own, clients, clientRequests, requestStreams, isStillSignedIn } = parts;

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
            shown: shownRequest(kit.textsFor(ctx)),
            async isStillTheirs() {
              const client = await clients.find(clientId);
              return client?.ownerAccountId === accountId && isStillSignedIn(ctx, accountId);
            },
          });
    if (stream === undefined) ctx.throw(503, 'no stream of requests now');
    ctx.type = 'text/event-stream';
    // Prevent compression and buffering by proxies, which would delay the heartbeats of the stream.
    ctx.set('Cache-Control', 'no-store, no-transform');
    ctx.set('X-Accel-Buffering', 'no');
    // Close the connection at the end of the stream, because a stopping node would wait for it to become idle.
    ctx.set('Connection', 'close');
    ctx.body = stream;
  }

  return [get(`${CLIENT}/requests`, ...own.page, openStream)];
}

const isUse = ({ step, error }: LoggedRequest): boolean => step === 'token' && error === null;

/** Returns the function that describes a request, for the page and for the stream. */
export const shownRequest = (t: Texts) => (request: LoggedRequest) => ({
  at: toMoment(request.at),
  time: timeOfDay(request.at),
  step: request.grantType ? `${request.step} ${request.grantType}` : request.step,
  outcome: request.error ?? t(`client-overview.done-${request.step}`),
  isRefused: request.error !== null,
  /** True if the client received tokens. */
  isUse: isUse(request),
  /** Empty if the cause says no more than the error code. */
  cause: request.cause === request.error ? '' : (request.cause ?? ''),
  requestId: request.requestId,
});
