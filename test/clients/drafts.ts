/** What the suites of clients and accounts register where any client will do. */

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
