/** The libraries of docs/libraries.md: what they can do, and which settings they need. */
import { readFileSync } from 'node:fs';
import path from 'node:path';

export interface Library {
  readonly name: string;
  readonly redirectPath: string;
  /** The steps that the library can take by itself: `connected`, `refreshed`, `revoked`. */
  readonly steps: readonly string[];
  /** Parts of the documented program without which the library fails with this message. */
  readonly needed: readonly (readonly [setting: string, replacement: string, message: RegExp])[];
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
    redirectPath: '/callback',
    steps: ALL,
    needed: [['  scope: [],\n', '', SCOPE_REFUSED]],
  },
  {
    name: 'grant',
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
    redirectPath: '/api/auth/callback/gatehouse',
    steps: ['connected'],
    needed: [
      ["  authorization: { params: { scope: '' } },\n", '', SCOPE_REFUSED],
      [USER_OF, '', /userinfo_endpoint must be configured/],
    ],
  },
  {
    name: 'better-auth',
    redirectPath: '/api/auth/callback/gatehouse',
    steps: ['connected', 'refreshed'],
    needed: [
      [SERVER, OPENID, /PROVIDER_NOT_FOUND/],
      ['  getUserInfo: ({ accessToken }) => userOf(accessToken),\n', '', /list-accounts: 401/],
    ],
  },
];

export const PYTHON_LIBRARIES: readonly Library[] = [
  {
    name: 'requests-oauth2client',
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
];

export const BROWSER_LIBRARIES: readonly Library[] = [
  {
    name: 'oidc-client-ts',
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
    redirectPath: '/callback',
    steps: ['connected', 'refreshed'],
    needed: [['  refreshWithScope: false,\n', '', /invalid_scope/]],
  },
];

export const PYTHON_PACKAGES = [
  'requests_oauth2client==1.8.0',
  'social-auth-core==7.0.0',
  'social-auth-app-django==8.0.0',
  'django-allauth[socialaccount]==65.21.1',
];

/** Returns the files in the guide: each block of code names its file. */
export function documentedFiles(): ReadonlyMap<string, string> {
  const guide = path.join(import.meta.dirname, '../../docs/libraries.md');
  const blocks = readFileSync(guide, 'utf8').matchAll(/```(?:js|python) (\S+)\n(.*?)```/gs);
  return new Map([...blocks].map(([, file = '', code = '']) => [file, code]));
}
