/** `/profile/oauth-clients/:id/connect`: what a library asks for, the test, and programs to run. */
import type { Context } from 'koa';
import { hasSecret, redirectsPeople } from '../../clients/client.ts';
import type { OwnedClient } from '../../clients/owned-clients.ts';
import { ENDPOINT } from '../../provider/endpoints.ts';
import { get, type PageParts, type Route } from '../routes.ts';
import type { ClientConnectionView } from './client-view.ts';
import { environmentFile } from './environment-file.ts';
import { CLIENT, headOf, type OwnClientSteps, ownClientOf, urlOf } from './own-client.ts';
import { listensAt, SUGGESTED_REDIRECT_URI } from './programs/values.ts';
import { clientSnippets } from './snippets.ts';
import { isTestable, testFormOf } from './test.ts';

export function connectRoutes(parts: PageParts, own: OwnClientSteps): Route[] {
  const { host } = parts;

  async function show(ctx: Context): Promise<void> {
    const client = ownClientOf(ctx);
    await host.render(ctx, 'oauth-client-connect', {
      head: await headOf(ctx, 'connect', parts),
      notice: await host.notices.take(ctx),
      id: client.id,
      test: isTestable(client) ? testFormOf(client) : undefined,
      ...connectionOf(client, parts),
    });
  }

  return [get(`${CLIENT}/connect`, ...own.page, show)];
}

/** What this page and that of a new secret have in common. @param secret where it may be shown. */
export function connectionOf(
  client: OwnedClient,
  { issuer, api }: Pick<PageParts, 'issuer' | 'api'>,
  secret?: string,
): ClientConnectionView {
  const { id: clientId, kind, redirectUris } = client;
  const isForPeople = hasSecret(kind) && redirectsPeople(kind);
  const listening = redirectUris.find(listensAt);
  const redirectUri = listening ?? SUGGESTED_REDIRECT_URI;
  const local = redirectUris.find((uri) => /^http:\/\/(127\.|localhost|\[::1\])/.test(uri));
  return {
    endpoints: endpointsOf(issuer),
    api: api && { url: api.graphqlUrl, query: api.exampleQuery },
    // The browser of the person goes there, whether anything listens or not.
    localAddress: local === undefined ? undefined : new URL(local).host,
    environment: environmentFile({
      issuer,
      client,
      redirectUri: listening ?? redirectUris[0],
      apiUrl: api?.graphqlUrl,
      secret,
    }),
    snippets: isForPeople ? clientSnippets({ issuer, clientId, redirectUri, api }) : [],
    toRegister:
      isForPeople && listening === undefined
        ? { uri: redirectUri, action: `${urlOf(client)}/redirect-uris` }
        : undefined,
  };
}

/** All there are for clients; `issuer` is what libraries call the whole of it. */
const endpointsOf = (issuer: string) => [
  { label: 'Issuer', url: issuer },
  { label: 'Authorization endpoint', url: issuer + ENDPOINT.authorization },
  { label: 'Token endpoint', url: issuer + ENDPOINT.token },
  { label: 'Revocation endpoint', url: issuer + ENDPOINT.revocation },
  { label: 'Introspection endpoint', url: issuer + ENDPOINT.introspection },
  { label: 'Metadata, for libraries that discover these', url: issuer + ENDPOINT.metadata },
];
