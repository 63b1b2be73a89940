/** The file's settings as the code reads them: camelCase, units in the names, derived ones added. */
import path from 'node:path';
import type { Override } from './environment.ts';
import { isLoopbackOrigin, mayHavePasskeys } from './issuer.ts';
import type { SettingsFile } from './schema/schema.ts';
import type { SettingsWithoutSecrets, SignInProvider } from './settings.ts';
import { projectDirectory } from './settings-file.ts';

export function settingsFrom(
  file: SettingsFile,
  overrides: readonly Override[],
  providers: readonly SignInProvider[],
): SettingsWithoutSecrets {
  const { server, storage, tokens, sessions, limits, mail, api } = file;
  const issuer = file.issuer ?? new URL(`http://localhost:${server.port}`).origin;
  const isLoopback = isLoopbackOrigin(issuer);
  const isEmbedded = storage.database_url === undefined;
  // A path in a variable is meant from where the command is typed, one in the file is not.
  const isTyped = overrides.some(({ setting }) => setting === 'storage.data_directory');
  return {
    issuer,
    isLoopback,
    server: {
      host: server.host,
      port: server.port,
      proxyHops: server.proxy_hops ?? 0,
      maxConnections: server.max_connections,
      operatorsHost: server.operators_host,
      operatorsPort: server.operators_port,
      reusePort: server.reuse_port,
      shutdownDelaySeconds: server.shutdown_delay,
    },
    storage: {
      dataDirectory: path.resolve(isTyped ? '.' : projectDirectory, storage.data_directory),
      ...(storage.database_url === undefined ? {} : { databaseUrl: storage.database_url }),
      ...(storage.redis_url === undefined ? {} : { redisUrl: storage.redis_url }),
      databaseConnections: storage.database_connections,
      rememberedPeople: storage.remembered_people,
      autoMigrate: storage.auto_migrate,
      acceptVolatileRedis: storage.accept_volatile_redis,
    },
    tokens: {
      authorizationCodeSeconds: tokens.authorization_code,
      accessTokenSeconds: tokens.access_token,
      machineAccessTokenSeconds: tokens.machine_access_token,
      refreshTokenSeconds: tokens.refresh_token,
      retryWindowSeconds: tokens.retry_window,
      absoluteAgeSeconds: tokens.absolute_age,
    },
    sessions: { idleSeconds: sessions.idle, absoluteSeconds: sessions.absolute },
    signIn: {
      passwords: file.sign_in.passwords,
      passkeys: file.sign_in.passkeys && mayHavePasskeys(issuer),
      providers,
      require: file.sign_in.require,
      requireGraceSeconds: file.sign_in.require_grace,
      recoveryWaitSeconds: file.sign_in.recovery_wait,
    },
    limits: {
      clientsPerPerson: limits.clients_per_person,
      apiKeysPerPerson: limits.api_keys_per_person,
      signInFailures: limits.sign_in_failures,
      signInFailuresPerAddress: limits.sign_in_failures_per_address,
      signInFailureWindowSeconds: limits.sign_in_failure_window,
      signInFailuresPerAccount: limits.sign_in_failures_per_account,
      signInAccountWindowSeconds: limits.sign_in_account_window,
      changeStreamsPerClient: limits.change_streams_per_client,
      waitingSignInsPerAddress: limits.waiting_sign_ins_per_address,
      clientFailures: limits.client_failures,
      clientFailuresPerAddress: limits.client_failures_per_address,
      clientFailureWindowSeconds: limits.client_failure_window,
    },
    ...(mail.smtp_url !== undefined && {
      mail: { smtpUrl: mail.smtp_url, from: mail.from ?? '' },
    }),
    ...(api.graphql_url !== undefined && {
      api: { graphqlUrl: api.graphql_url, exampleQuery: api.example_query },
    }),
    activity: { retentionSeconds: file.activity.retention },
    import: { pruneAtMost: file.import.prune_at_most },
    demo: file.demo ?? (isEmbedded && isLoopback),
    log: file.log,
  };
}
