/** Client registrations for tests to which any valid client will do. */

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
