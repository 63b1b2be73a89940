/** A `.env` to copy: what a client is configured with, for shells, containers and dotenv libraries. */
import { type Client, hasSecret } from '../../clients/client.ts';
import { ENDPOINT } from '../../provider/endpoints.ts';
import { inShell } from './programs/values.ts';

export function environmentFile({
  issuer,
  client,
  redirectUri,
  apiUrl,
  secret = '',
}: {
  readonly issuer: string;
  readonly client: Pick<Client, 'id' | 'kind'>;
  readonly redirectUri: string | undefined;
  readonly apiUrl: string | undefined;
  /** Where it may be shown. */
  readonly secret: string | undefined;
}): string {
  const values: Readonly<Record<string, string | undefined>> = {
    OAUTH_ISSUER: issuer,
    OAUTH_AUTHORIZATION_ENDPOINT: issuer + ENDPOINT.authorization,
    OAUTH_TOKEN_ENDPOINT: issuer + ENDPOINT.token,
    OAUTH_REVOCATION_ENDPOINT: issuer + ENDPOINT.revocation,
    OAUTH_INTROSPECTION_ENDPOINT: issuer + ENDPOINT.introspection,
    CLIENT_ID: client.id,
    CLIENT_SECRET: hasSecret(client.kind) ? secret : undefined,
    REDIRECT_URI: redirectUri,
    GRAPHQL_URL: apiUrl,
  };
  return Object.entries(values)
    .flatMap(([name, value]) => (value === undefined ? [] : [`${name}=${quoted(value)}\n`]))
    .join('');
}

/** Quotes only where something needs them: not every reader of such a file takes them off. */
const quoted = (value: string): string => (/^[\w./:@%+,=-]*$/.test(value) ? value : inShell(value));
