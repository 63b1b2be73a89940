/** `/profile/oauth-clients/:id`: shows a client of the user. */
import type { Context } from 'koa';
import { message } from '../../base/message.ts';
import { redirectsPeople } from '../../clients/client.ts';
import type { ClientProblemGroup, ClientRequests } from '../../clients/client-requests.ts';
import { formerSecretsOf, type OwnedClient, shownPeople } from '../../clients/client-row.ts';
import type { PageKit } from '../page-kit.ts';
import { get, type Route } from '../routes.ts';
import { momentOrNothing, toMoment } from '../words/moment.ts';
import { CLIENT, type OwnClientPages, ownClientOf, urlOf } from './own-client.ts';

export function clientPage(parts: {
  readonly kit: PageKit;
  readonly own: OwnClientPages;
  readonly clientRequests: Pick<ClientRequests, 'groups'>;
}): Route[] {
  const { kit, own, clientRequests } = parts;

  async function show(ctx: Context): Promise<void> {
    const client = ownClientOf(ctx);
    // Call `groups` before `head` counts the problems, because it also writes the requests that are still queued.
    const groups = await clientRequests.groups(client.id);
    await kit.render(ctx, 'oauth-client', {
      head: await own.head(ctx, 'overview'),
      notice: await kit.notices.take(ctx),
      ...overviewOf(client, groups),
    });
  }

  return [get(CLIENT, ...own.page, show)];
}

export function overviewOf(client: OwnedClient, groups: readonly ClientProblemGroup[]) {
  const [latest, ...others] = groups.filter(({ isMended }) => !isMended);
  return {
    client: {
      id: client.id,
      created: toMoment(client.createdAt),
      connectedPeople: message('oauth-clients.people-count', shownPeople(client.connectedPeople)),
      lastUsed: momentOrNothing(client.lastUsedAt),
      /** When the client got its present owner; undefined for the first owner. */
      ownedSince: momentOrNothing(client.ownedSince),
      /** How many secrets a former owner may know. */
      formerSecrets: formerSecretsOf(client).length,
      redirectUris: client.redirectUris,
      /** When the operator verified the client; undefined for a client that is not verified. */
      verified: momentOrNothing(client.verifiedAt),
      /** True if users approve the client. */
      isForPeople: redirectsPeople(client.kind),
    },
    secretsUrl: urlOf(client, 'secrets'),
    connectUrl: urlOf(client, 'connect'),
    settingsUrl: urlOf(client, 'settings'),
    /** Undefined if the client has no open problem. */
    problems: latest && {
      url: urlOf(client, 'problems'),
      latest: { error: latest.error, cause: latest.cause, last: toMoment(latest.at) },
      others: others.length,
    },
  };
}
