/** `/profile/oauth-clients/:id/connect`: values for a library, the test, and programs to run. */
import type { Context } from 'koa';
import { type Client, hasSecret, redirectsPeople } from '../../clients/client.ts';
import type { OwnedClient } from '../../clients/client-row.ts';
import { ENDPOINT } from '../../provider/endpoints.ts';
import type { PageKit } from '../page-kit.ts';
import { get, type Route, type ShownApi } from '../routes.ts';
import type { ClientConnectionView } from './client-view.ts';
import { CLIENT, type OwnClientPages, ownClientOf, urlOf } from './own-client.ts';
import { clientSnippets, inShell, listensAt, SUGGESTED_REDIRECT_URI } from './programs.ts';
import { isTestable, testFormOf } from './test.ts';

export function connectPage(parts: {
  readonly kit: PageKit;
  readonly own: OwnClientPages;
  readonly issuer: string;
  readonly api: ShownApi | undefined;
}): Route[] {
  const { kit, own, issuer, api } = parts;

  async function show(ctx: Context): Promise<void> {
    const client = ownClientOf(ctx);
    await kit.render(ctx, 'oauth-client-connect', {
      head: await own.head(ctx, 'connect'),
      notice: await kit.notices.take(ctx),
      id: client.id,
      test: isTestable(client) ? testFormOf(client) : undefined,
      ...connectionOf(client, { issuer, api }),
    });
  }

  return [get(`${CLIENT}/connect`, ...own.page, show)];
}

/** Returns data that the page of a new secret shows, too. @param secret only if it may be shown. */
export function connectionOf(
  client: OwnedClient,
  { issuer, api }: { readonly issuer: string; readonly api: ShownApi | undefined },
  secret?: string,
): ClientConnectionView {
  const { id: clientId, kind, redirectUris } = client;
  const isForPeople = hasSecret(kind) && redirectsPeople(kind);
  const listening = redirectUris.find(listensAt);
  const redirectUri = listening ?? SUGGESTED_REDIRECT_URI;
  const snippets = isForPeople ? clientSnippets({ issuer, clientId, redirectUri, api }) : [];
  const local = redirectUris.find((uri) => /^http:\/\/(127\.|localhost|\[::1\])/.test(uri));
  return {
    endpoints: endpointsOf(issuer),
    api: api && { url: api.graphqlUrl, query: api.exampleQuery },
    // Show the address even if no program listens there: the user's browser is redirected to it.
    localAddress: local === undefined ? undefined : new URL(local).host,
    environment: environmentFile({
      issuer,
      client,
      redirectUri: listening ?? redirectUris[0],
      apiUrl: api?.graphqlUrl,
      secret,
    }),
    snippets,
    toRegister:
      isForPeople && listening === undefined
        ? { uri: redirectUri, action: `${urlOf(client)}/redirect-uris` }
        : undefined,
  };
}

/** All endpoints for clients, and the issuer, which libraries need for discovery. */
const endpointsOf = (issuer: string) => [
  { label: 'Issuer', url: issuer },
  { label: 'Authorization endpoint', url: issuer + ENDPOINT.authorization },
  { label: 'Token endpoint', url: issuer + ENDPOINT.token },
  { label: 'Revocation endpoint', url: issuer + ENDPOINT.revocation },
  { label: 'Introspection endpoint', url: issuer + ENDPOINT.introspection },
  { label: 'Metadata, for libraries that discover these', url: issuer + ENDPOINT.metadata },
];

/** A `.env` with the configuration of a client, for shells, containers and dotenv libraries. */
function environmentFile(parts: {
  readonly issuer: string;
  readonly client: Pick<Client, 'id' | 'kind'>;
  readonly redirectUri: string | undefined;
  readonly apiUrl: string | undefined;
  /** The secret, if it may be shown. */
  readonly secret: string | undefined;
}): string {
  const { issuer, client, redirectUri, apiUrl, secret = '' } = parts;
  const values: Readonly<Record<string, string | undefined>> = {
    CLIENT_ID: client.id,
    CLIENT_SECRET: hasSecret(client.kind) ? secret : undefined,
    OAUTH_ISSUER: issuer,
    REDIRECT_URI: redirectUri,
    GRAPHQL_URL: apiUrl,
    OAUTH_AUTHORIZATION_ENDPOINT: issuer + ENDPOINT.authorization,
    OAUTH_TOKEN_ENDPOINT: issuer + ENDPOINT.token,
    OAUTH_REVOCATION_ENDPOINT: issuer + ENDPOINT.revocation,
    OAUTH_INTROSPECTION_ENDPOINT: issuer + ENDPOINT.introspection,
  };
  return Object.entries(values)
    .flatMap(([name, value]) => (value === undefined ? [] : [`${name}=${quoted(value)}\n`]))
    .join('');
}

/** Quotes only if necessary: not every reader of such a file removes the quotes. */
const quoted = (value: string): string => (/^[\w./:@%+,=-]*$/.test(value) ? value : inShell(value));
