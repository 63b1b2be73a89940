/** The libraries of docs/libraries.md: what they can do, and which settings they need. */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

export interface Library {
  readonly name: string;
  /** How its row of the guide begins, if the guide has no program for it. */
  readonly row?: string;
  readonly redirectPath: string;
  /** The steps that the library can take by itself: `connected`, `refreshed`, `revoked`. */
  readonly steps: readonly string[];
  /** Parts of the program without which the library fails with this message. */
  readonly needed: readonly (readonly [setting: string, replacement: string, message: RegExp])[];
  /** The failure of a library that cannot connect, whatever is set. */
  readonly cannot?: RegExp;
}

const ALL = ['connected', 'refreshed', 'revoked'];
const SERVER = '/.well-known/oauth-authorization-server';
const OPENID = '/.well-known/openid-configuration';
const NOT_FOUND = /this URL does not exist/;
const SCOPE_REFUSED = /error=invalid_scope/;
const EARLIER_TOKEN = /an earlier refresh token was sent/;
const USER_OF = '  userinfo: { request: ({ tokens }) => userOf(tokens.access_token) },\n';

export const NODE_LIBRARIES: readonly Library[] = [
  {
    name: 'openid-client-5',
    row: 'openid-client 5',
    redirectPath: '/callback',
    steps: ALL,
    needed: [
      [SERVER, '', NOT_FOUND],
      ["    scope: '',\n", '', SCOPE_REFUSED],
      ['client.oauthCallback', 'client.callback', /id_token not present/],
    ],
  },
  {
    name: 'fastify-oauth2',
    row: '@fastify/oauth2',
    redirectPath: '/callback',
    steps: ALL,
    needed: [['  scope: [],\n', '', SCOPE_REFUSED]],
  },
  {
    name: 'grant',
    row: 'grant',
    redirectPath: '/connect/gatehouse/callback',
    steps: ['connected'],
    needed: [['    state: true,\n    pkce: true,\n', '', /state or code_challenge is required/]],
  },
  {
    name: 'google-auth-library',
    redirectPath: '/callback',
    steps: ['connected', 'refreshed', 'refreshed'],
    needed: [['  client.credentials.refresh_token = refresh_token;\n', '', EARLIER_TOKEN]],
  },
  {
    name: 'remix-auth-oauth2',
    row: 'remix-auth-oauth2',
    redirectPath: '/callback',
    steps: ALL,
    needed: [[SERVER, '', /Failed to discover issuer/]],
  },
  {
    name: 'authjs',
    redirectPath: '/auth/callback/gatehouse',
    steps: ['connected'],
    needed: [
      [", params: { scope: '' }", '', SCOPE_REFUSED],
      [USER_OF, '', /No userinfo endpoint configured/],
      ['  issuer,\n', '', /InvalidEndpoints/],
    ],
  },
  {
    name: 'next-auth-4',
    row: 'NextAuth.js 4',
    redirectPath: '/api/auth/callback/gatehouse',
    steps: ['connected'],
    needed: [
      ["  authorization: { params: { scope: '' } },\n", '', SCOPE_REFUSED],
      [USER_OF, '', /userinfo_endpoint must be configured/],
    ],
  },
  {
    name: 'better-auth',
    row: 'Better Auth',
    redirectPath: '/api/auth/callback/gatehouse',
    steps: ['connected', 'refreshed'],
    needed: [
      [SERVER, OPENID, /PROVIDER_NOT_FOUND/],
      ['  getUserInfo: ({ accessToken }) => userOf(accessToken),\n', '', /list-accounts: 401/],
    ],
  },
  {
    name: 'mcp-sdk',
    row: 'MCP clients (@model',
    redirectPath: '/callback',
    steps: ['connected', 'refreshed'],
    needed: [
      [
        'clientInformation: () => ({ client_id: clientId, client_secret: clientSecret })',
        'clientInformation: () => undefined',
        /saveable for dynamic registration/,
      ],
      [
        'clientMetadata: { redirect_uris: [redirectUri] }',
        "clientMetadata: { redirect_uris: [redirectUri], scope: 'offline_access' }",
        SCOPE_REFUSED,
      ],
    ],
  },
];

export const PYTHON_LIBRARIES: readonly Library[] = [
  {
    name: 'requests-oauth2client',
    row: 'requests_oauth2client',
    redirectPath: '/callback',
    steps: ALL,
    needed: [
      [`    f'{ISSUER}${SERVER}',\n`, '', /Mismatching `issuer`/],
      ['scope=None', '', SCOPE_REFUSED],
      ['    testing=True,\n', '', /must use https/],
    ],
  },
  {
    name: 'social-auth-core',
    redirectPath: '/complete/gatehouse/',
    steps: ALL,
    needed: [
      ['    REDIRECT_STATE = False\n', '', /return address is not registered/],
      ["    EXTRA_DATA = ['refresh_token', 'expires_in']\n", '', /KeyError: 'refresh_token'/],
      ["'token': token, ", '', /400 Client Error/],
    ],
  },
  {
    name: 'django-allauth',
    redirectPath: '/gatehouse/login/callback/',
    steps: ['connected'],
    needed: [['SOCIALACCOUNT_STORE_TOKENS = True\n', '', /SocialToken matching query does not/]],
  },
  {
    name: 'fastapi-sso',
    row: 'fastapi-sso',
    redirectPath: '/callback',
    steps: ['connected'],
    needed: [[", scope=['']", '', SCOPE_REFUSED]],
  },
  {
    name: 'singer-sdk',
    row: 'singer-sdk',
    redirectPath: '/callback',
    steps: ['connected', 'refreshed', 'refreshed'],
    needed: [
      ['    def update_access_token', '    def unused', EARLIER_TOKEN],
      ["        self.refresh_token = tokens['refresh_token']\n", '', EARLIER_TOKEN],
    ],
  },
  {
    name: 'mcp-sdk',
    row: 'MCP clients (mcp',
    redirectPath: '/callback',
    steps: ['connected', 'refreshed'],
    needed: [
      ['get_client_info(self):\n', 'get_client_info(self):\n        return None\n', /Registration failed/],
      ["            token_endpoint_auth_method='client_secret_basic',\n", '', /invalid_client/],
    ],
  },
];

export const BROWSER_LIBRARIES: readonly Library[] = [
  {
    name: 'oidc-client-ts',
    row: 'oidc-client-ts',
    redirectPath: '/callback',
    steps: ALL,
    needed: [
      [SERVER, OPENID, NOT_FOUND],
      ["  scope: 'none',\n", '', /Invalid token specified/],
      ['  omitScopeWhenRequesting: true,\n', '', SCOPE_REFUSED],
      ["  refreshTokenAllowedScope: '',\n", '', /no scopes exist/],
    ],
  },
  {
    name: 'appauth-js',
    redirectPath: '/callback',
    steps: ALL,
    needed: [
      [
        'new AuthorizationServiceConfiguration(await metadata.json())',
        'await AuthorizationServiceConfiguration.fetchFromIssuer(issuer, new FetchRequestor())',
        /404/,
      ],
      ['new SearchParameters()', 'undefined', /connected: no result/],
      ['new FetchRequestor()', '', /\$ is not defined/],
    ],
  },
  {
    name: 'react-oauth2-code-pkce',
    row: 'react-oauth2-code-pkce',
    redirectPath: '/callback',
    steps: ['connected', 'refreshed'],
    needed: [['  refreshWithScope: false,\n', '', /invalid_scope/]],
  },
  {
    name: 'js-pkce',
    row: 'js-pkce',
    redirectPath: '/callback',
    steps: ALL,
    needed: [["  requested_scopes: '',\n", '', SCOPE_REFUSED]],
  },
  {
    name: 'axa-oidc-client',
    row: '@axa-fr/oidc-client',
    redirectPath: '/callback',
    steps: ['connected', 'refreshed'],
    needed: [
      ["  scope: '',\n", '', SCOPE_REFUSED],
      ['  authority_configuration: {', '  other: {', /Cannot read prop/],
    ],
  },
  {
    name: 'oidc-client-1',
    redirectPath: '/callback',
    steps: [],
    cannot: /scope/,
    needed: [["scope: ''", "scope: 'none'", SCOPE_REFUSED]],
  },
];

export const PYTHON_PACKAGES = [
  'requests_oauth2client==1.8.0',
  'social-auth-core==7.0.0',
  'social-auth-app-django==8.0.0',
  'django-allauth[socialaccount]==65.21.1',
  'fastapi-sso==0.23.0',
  'mcp==2.3.0',
  'singer-sdk==0.54.9',
];

/** Returns the programs: each block of code of the guide names its file, the others are in `documented/`. */
export function documentedFiles(): ReadonlyMap<string, string> {
  const guide = path.join(import.meta.dirname, '../../docs/libraries.md');
  const blocks = readFileSync(guide, 'utf8').matchAll(/```(?:js|python) (\S+)\n(.*?)```/gs);
  const folder = path.join(import.meta.dirname, 'documented');
  const files = readdirSync(folder).map((file) => [file, readFileSync(path.join(folder, file), 'utf8')] as const);
  return new Map([...[...blocks].map(([, file = '', code = '']) => [file, code] as const), ...files]);
}
