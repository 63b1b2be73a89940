/** What an operator decides, in the shape every part of the service reads. */

/** Every time is in seconds. */
export interface Settings {
  /** The public origin, `https://auth.example.com`: no path, no trailing slash. */
  readonly issuer: string;
  /** The issuer's host is `localhost`, in 127.0.0.0/8 or `[::1]`: http and a demo are allowed. */
  readonly isLoopback: boolean;
  readonly server: {
    readonly host: string;
    readonly port: number;
    readonly proxyHops: number;
    readonly maxConnections: number;
    readonly operatorsHost: string;
    readonly operatorsPort: number;
    /** Other processes of this machine may listen on `port` too. */
    readonly reusePort: boolean;
    readonly shutdownDelaySeconds: number;
  };
  readonly storage: {
    /** An absolute path. */
    readonly dataDirectory: string;
    readonly databaseUrl?: string;
    /** That each process may open to the database. */
    readonly databaseConnections: number;
    /** By each process, and as many API keys. */
    readonly rememberedPeople: number;
    readonly redisUrl?: string;
    readonly autoMigrate: boolean;
    readonly acceptVolatileRedis: boolean;
  };
  readonly tokens: {
    readonly authorizationCodeSeconds: number;
    readonly accessTokenSeconds: number;
    readonly machineAccessTokenSeconds: number;
    readonly refreshTokenSeconds: number;
    readonly retryWindowSeconds: number;
    /** Undefined: a chain of refreshes never ends by itself. */
    readonly absoluteAgeSeconds: number | undefined;
  };
  readonly sessions: { readonly idleSeconds: number; readonly absoluteSeconds: number };
  readonly limits: {
    readonly clientsPerPerson: number;
    readonly apiKeysPerPerson: number;
    readonly signInFailures: number;
    readonly signInFailuresPerAddress: number;
    readonly signInFailureWindowSeconds: number;
    readonly signInFailuresPerAccount: number;
    readonly signInAccountWindowSeconds: number;
    readonly waitingSignInsPerAddress: number;
    readonly clientFailures: number;
    readonly clientFailuresPerAddress: number;
    readonly clientFailureWindowSeconds: number;
  };
  /** Absent where no mail is sent. */
  readonly mail?: { readonly smtpUrl: string; readonly from: string };
  /** Absent where owners of clients are shown no API. */
  readonly api?: { readonly graphqlUrl: string; readonly exampleQuery: string };
  readonly activity: { readonly retentionSeconds: number };
  readonly demo: boolean;
  readonly log: {
    readonly level: 'debug' | 'info' | 'warn' | 'error' | 'silent';
    readonly format: 'numbers' | 'words';
  };
  /** Current key first, older ones still accepted; each at least 32 characters. */
  readonly secrets: {
    readonly cookieKeys: Keys;
    readonly tokenKeys: Keys;
  };
}

/** There is always one that signs. */
export type Keys = readonly [current: string, ...older: string[]];

export type SettingsWithoutSecrets = Omit<Settings, 'secrets'>;
