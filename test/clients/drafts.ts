/** Client registrations for tests that work with any client. */

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
