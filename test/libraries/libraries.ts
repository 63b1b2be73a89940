/** The libraries of docs/libraries.md, and what they can do. */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

export interface Library {
  readonly name: string;
  /** How its row of the guide begins, if the guide has no program for it. */
  readonly row?: string;
  readonly redirectPath: string;
  /** The steps that the library can take by itself: `connected`, `refreshed`, `revoked`. */
  readonly steps: readonly string[];
  /** The failure of a library that cannot connect, whatever is set. */
  readonly cannot?: RegExp;
}

const ALL = ['connected', 'refreshed', 'revoked'];

export const NODE_LIBRARIES: readonly Library[] = [
  { name: 'openid-client-5', row: 'openid-client 5', redirectPath: '/callback', steps: ALL },
  { name: 'fastify-oauth2', row: '@fastify/oauth2', redirectPath: '/callback', steps: ALL },
  { name: 'grant', row: 'grant', redirectPath: '/connect/gatehouse/callback', steps: ['connected'] },
  { name: 'google-auth-library', redirectPath: '/callback', steps: ['connected', 'refreshed', 'refreshed'] },
  { name: 'remix-auth-oauth2', row: 'remix-auth-oauth2', redirectPath: '/callback', steps: ALL },
  { name: 'authjs', redirectPath: '/auth/callback/gatehouse', steps: ['connected'] },
  { name: 'next-auth-4', row: 'NextAuth.js 4', redirectPath: '/api/auth/callback/gatehouse', steps: ['connected'] },
  {
    name: 'better-auth',
    row: 'Better Auth',
    redirectPath: '/api/auth/callback/gatehouse',
    steps: ['connected', 'refreshed'],
  },
  { name: 'mcp-sdk', row: 'MCP clients (@model', redirectPath: '/callback', steps: ['connected', 'refreshed'] },
];

export const PYTHON_LIBRARIES: readonly Library[] = [
  { name: 'requests-oauth2client', row: 'requests_oauth2client', redirectPath: '/callback', steps: ALL },
  { name: 'social-auth-core', redirectPath: '/complete/gatehouse/', steps: ALL },
  { name: 'django-allauth', redirectPath: '/gatehouse/login/callback/', steps: ['connected'] },
  { name: 'fastapi-sso', row: 'fastapi-sso', redirectPath: '/callback', steps: ['connected'] },
  { name: 'singer-sdk', row: 'singer-sdk', redirectPath: '/callback', steps: ['connected', 'refreshed', 'refreshed'] },
  { name: 'mcp-sdk', row: 'MCP clients (mcp', redirectPath: '/callback', steps: ['connected', 'refreshed'] },
];

export const BROWSER_LIBRARIES: readonly Library[] = [
  { name: 'oidc-client-ts', row: 'oidc-client-ts', redirectPath: '/callback', steps: ALL },
  { name: 'appauth-js', redirectPath: '/callback', steps: ALL },
  {
    name: 'react-oauth2-code-pkce',
    row: 'react-oauth2-code-pkce',
    redirectPath: '/callback',
    steps: ['connected', 'refreshed'],
  },
  { name: 'js-pkce', row: 'js-pkce', redirectPath: '/callback', steps: ALL },
  { name: 'axa-oidc-client', row: '@axa-fr/oidc-client', redirectPath: '/callback', steps: ['connected', 'refreshed'] },
  { name: 'oidc-client-1', redirectPath: '/callback', steps: [], cannot: /scope/ },
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
