/** Client registrations for tests to which any valid client will do. */
import type { Client } from '../../src/clients/client.ts';
import { findSecret } from '../../src/clients/client-secrets.ts';

export const partner = {
  kind: 'confidential',
  name: 'Partner',
  redirectUris: ['https://app.example/cb'],
  isNative: false,
} as const;

export const machine = {
  kind: 'machine',
  name: 'Robot',
  redirectUris: [],
  isNative: false,
} as const;

/** True if `presented` is a secret of the client. */
export const matchesSecret = (client: Client | undefined, presented: string): boolean =>
  findSecret(client, presented) !== undefined;
