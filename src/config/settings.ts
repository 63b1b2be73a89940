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
  readonly signIn: {
    readonly passwords: boolean;
    /** False on an issuer that can have none, too. */
    readonly passkeys: boolean;
    readonly providers: readonly SignInProvider[];
    /** Of owners and admins of organizations, and of people who own clients. */
    readonly require: 'off' | 'passkey-or-upstream';
    /** From when they are first told. */
    readonly requireGraceSeconds: number;
    /** Between using a mailed link and recovering the account of such a person. */
    readonly recoveryWaitSeconds: number;
  };
  readonly limits: {
    readonly clientsPerPerson: number;
    readonly apiKeysPerPerson: number;
    readonly signInFailures: number;
    readonly signInFailuresPerAddress: number;
    readonly signInFailureWindowSeconds: number;
    readonly signInFailuresPerAccount: number;
    readonly signInAccountWindowSeconds: number;
    readonly changeStreamsPerClient: number;
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
  /** `pruneAtMost` is a percentage such as `10%`, or a number. */
  readonly import: { readonly pruneAtMost: string };
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

/** An OpenID Connect provider where people have an account already. */
export interface SignInProvider {
  /** In addresses, log and metrics. */
  readonly id: string;
  /** On its button. */
  readonly label: string;
  readonly issuer: string;
  readonly clientId: string;
  /** Absent for a public client, and for commands that need no secret. */
  readonly clientSecret?: string;
  /** How the account of somebody is found who comes from there for the first time. */
  readonly match: 'external_id' | 'verified_email' | 'none';
  /** The claim that is the external id. */
  readonly accountClaim: string;
  readonly scopes: readonly string[];
  /** Other hosts than the issuer's where its endpoints may be. */
  readonly endpointHosts: readonly string[];
  /** Asked for with each sign-in there. */
  readonly acrValues: readonly string[];
  /** How strong a sign-in there is: see `isStrongSignIn` in accounts/sign-in-strength.ts. */
  readonly isStrong: boolean;
  readonly strongAcr: readonly string[];
  readonly strongAmr: readonly string[];
  /** Whose people come from there, by the domain of their address (mail-domain.ts). */
  readonly hintDomains: readonly string[];
  /** Opens an account for who has none. */
  readonly create: boolean;
  /** Its back-channel logout disconnects the person's clients as well. */
  readonly endConnections: boolean;
}

/** There is always one that signs. */
export type Keys = readonly [current: string, ...older: string[]];

export type SettingsWithoutSecrets = Omit<Settings, 'secrets'>;
