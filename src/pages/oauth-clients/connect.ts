/** `/profile/oauth-clients/:id/connect`: shows developers the values for libraries, and example programs. */
import type { Context } from 'koa';
import { message } from '../../base/message.ts';
import type { TestOrganizations } from '../../changes/test-organizations.ts';
import { type Client, hasSecret, redirectsPeople } from '../../clients/client.ts';
import type { OwnedClient } from '../../clients/client-row.ts';
import { ENDPOINT } from '../../provider/endpoints.ts';
import type { PageKit } from '../page-kit.ts';
import { get, type Route, type ShownApi } from '../routes.ts';
import { CLIENT, type OwnClientPages, ownClientOf, urlOf } from './own-client.ts';
import { clientSnippets, inShell, listensAt, SUGGESTED_REDIRECT_URI } from './programs.ts';
import { testOrganizationsFor } from './test-organizations.ts';

export function connectPage(parts: {
  readonly kit: PageKit;
  readonly own: OwnClientPages;
  readonly issuer: string;
  readonly api: ShownApi | undefined;
  readonly testOrganizations: TestOrganizations;
}): Route[] {
  const { kit, own, issuer, api, testOrganizations } = parts;

  async function show(ctx: Context): Promise<void> {
    // Clear the cache: the previous page has shown a secret, and some browsers cache even `no-store` pages for Back.
    if (ctx.query.from === 'secret') ctx.set('Clear-Site-Data', '"cache"');
    const client = ownClientOf(ctx);
    await kit.render(ctx, 'oauth-client-connect', {
      head: await own.head(ctx, 'connect'),
      notice: await kit.notices.take(ctx),
      id: client.id,
      testOrganizations: await testOrganizationsFor(ctx, testOrganizations),
      ...connectionOf(client, { issuer, api }),
    });
  }

  return [get(`${CLIENT}/connect`, ...own.page, show)];
}

interface Served {
  readonly issuer: string;
  readonly api: ShownApi | undefined;
}

/** Returns the parts of a `.env` file before, between and after the client ID and the secret. */
export function environmentAround(client: OwnedClient, served: Served, secret: string) {
  const file = environmentFile(client, served, secret);
  const [before = '', rest = ''] = halves(file, client.id);
  const [between = '', after = ''] = halves(rest, secret);
  return { before, between, after };
}

function halves(text: string, at: string): [string, string] {
  const start = text.indexOf(at);
  return [text.slice(0, start), text.slice(start + at.length)];
}

export type ConnectionView = ReturnType<typeof connectionOf>;

function connectionOf(client: OwnedClient, { issuer, api }: Served) {
  const { id: clientId, kind, redirectUris } = client;
  const isForPeople = hasSecret(kind) && redirectsPeople(kind);
  const listening = redirectUris.find(listensAt);
  const redirectUri = listening ?? SUGGESTED_REDIRECT_URI;
  const snippets = isForPeople ? clientSnippets({ issuer, clientId, redirectUri, api }) : [];
  const local = redirectUris.find((uri) => /^http:\/\/(127\.|localhost|\[::1\])/.test(uri));
  return {
    endpoints: endpointsOf(issuer),
    api: api && { url: api.graphqlUrl, query: api.exampleQuery },
    // Show this address even if no example program can listen at it, because the browser is redirected to it.
    localAddress: local === undefined ? undefined : new URL(local).host,
    environment: environmentFile(client, { issuer, api }),
    /** Empty for a client without a secret or without a redirect flow. */
    snippets,
    /** The redirect URI that the user should register, if the programs cannot listen at any registered URI. */
    toRegister:
      isForPeople && listening === undefined
        ? { uri: redirectUri, action: `${urlOf(client)}/redirect-uris` }
        : undefined,
  };
}

/** The list includes the issuer and the metadata, from which libraries discover the other endpoints. */
const endpointsOf = (issuer: string) => [
  { label: message('client-connect.endpoint-issuer'), url: issuer },
  ...(['authorization', 'token', 'revocation', 'introspection', 'metadata'] as const).map((name) => ({
    label: message(`client-connect.endpoint-${name}`),
    url: issuer + ENDPOINT[name],
  })),
];

/** Returns a `.env` file that shells, containers and dotenv libraries can read. */
function environmentFile(client: Pick<Client, 'id' | 'kind' | 'redirectUris'>, { issuer, api }: Served, secret = '') {
  const values: Readonly<Record<string, string | undefined>> = {
    CLIENT_ID: client.id,
    CLIENT_SECRET: hasSecret(client.kind) ? secret : undefined,
    OAUTH_ISSUER: issuer,
    REDIRECT_URI: client.redirectUris.find(listensAt) ?? client.redirectUris[0],
    GRAPHQL_URL: api?.graphqlUrl,
    OAUTH_AUTHORIZATION_ENDPOINT: issuer + ENDPOINT.authorization,
    OAUTH_TOKEN_ENDPOINT: issuer + ENDPOINT.token,
    OAUTH_REVOCATION_ENDPOINT: issuer + ENDPOINT.revocation,
    OAUTH_INTROSPECTION_ENDPOINT: issuer + ENDPOINT.introspection,
  };
  return Object.entries(values)
    .flatMap(([name, value]) => (value === undefined ? [] : [`${name}=${quoted(value)}\n`]))
    .join('');
}

/** Adds quotation marks only if necessary, because some readers of `.env` files do not remove them. */
const quoted = (value: string): string => (/^[\w./:@%+,=-]*$/.test(value) ? value : inShell(value));
