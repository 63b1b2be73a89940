/** `/profile/oauth-clients/:id`, and `…/problems`: show a client of the user, and why its requests were refused. */
import type { Context } from 'koa';
import { message } from '../../base/message.ts';
import { type Client, redirectsPeople } from '../../clients/client.ts';
import { type ClientRequests, MAX_EQUAL, type ClientProblemGroup as Stored } from '../../clients/client-requests.ts';
import { formerSecretsOf, type OwnedClient, shownPeople } from '../../clients/client-row.ts';
import { withoutValues } from '../../clients/storable-text.ts';
import { isDocumentedError } from '../error-reference.ts';
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

  async function showOverview(ctx: Context): Promise<void> {
    const client = ownClientOf(ctx);
    // Call `groups` first: it stores the queued requests, and `head` counts only the stored problems.
    const groups = await clientRequests.groups(client.id);
    await kit.render(ctx, 'oauth-client', {
      head: await own.head(ctx, 'overview'),
      notice: await kit.notices.take(ctx),
      ...overviewOf(client, groups),
    });
  }

  async function showProblems(ctx: Context): Promise<void> {
    const client = ownClientOf(ctx);
    const groups = problemGroupsOf(await clientRequests.groups(client.id), client);
    await kit.render(ctx, 'oauth-client-problems', {
      head: await own.head(ctx, 'problems'),
      notice: await kit.notices.take(ctx),
      open: groups.filter(({ isMended }) => !isMended),
      mended: groups.filter(({ isMended }) => isMended),
    });
  }

  return [get(CLIENT, ...own.page, showOverview), get(`${CLIENT}/problems`, ...own.page, showProblems)];
}

export function overviewOf(client: OwnedClient, groups: readonly Stored[]) {
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

export type ClientProblemGroup = ReturnType<typeof problemGroupsOf>[number];

function problemGroupsOf(groups: readonly Stored[], client: Pick<Client, 'redirectUris'>) {
  // Compare without the values of query parameters, because problems are stored without these values.
  const registered = client.redirectUris.map(withoutValues);
  return groups.map(({ at, ...group }) => ({
    ...group,
    isCut: group.count >= MAX_EQUAL,
    first: toMoment(group.first),
    last: toMoment(at),
    errorUrl: isDocumentedError(group.error) ? `/errors/${group.error}` : undefined,
    authMethod: group.authMethod && message(`client-problems.auth-${group.authMethod}`),
    redirectUri: redirectUriOf(group, registered),
  }));
}

/** Returns the sent redirect URI, and the registered ones if the sent one is the cause of the problem. */
function redirectUriOf(
  { redirectUri, step, error, cause, isMended }: Omit<Stored, 'at'>,
  registered: readonly string[],
) {
  if (redirectUri === null) return undefined;
  const isTheCause = error === 'invalid_redirect_uri' || /redirect_uri/.test(cause);
  if (step === 'token' && !isTheCause) return undefined;
  /** True if the sent URI may differ from a registered URI only in the values that are not stored. */
  const isHidden = error === 'invalid_redirect_uri' && !isMended && registered.includes(redirectUri);
  return { sent: redirectUri, registered: isTheCause ? registered : [], isHidden };
}
