/** Explains failures outside the program to the operator, at a start and in every command. */
import { Refusal } from '../base/refusal.ts';
import { ConfigurationProblems } from '../config/problems.ts';
import { PASSWORDS_IN_URLS } from '../config/urls.ts';
import { StorageUnavailable } from '../storage/storage-unavailable.ts';

/** A failure that an operator can fix. */
export interface Trouble {
  /** Stable: scripts may compare it. */
  readonly code: string;
  readonly message: string;
  readonly remedy: string;
  /** True if it may pass by itself in a moment. */
  readonly mayPass?: boolean;
}

/** Returns undefined for errors of this program itself. */
export function troubleOf(error: unknown): Trouble | undefined {
  if (error instanceof Refusal) return error;
  // Its own description is for clients, and names neither the store nor the cause.
  if (error instanceof StorageUnavailable) {
    const store = error.reason.startsWith('redis') ? REDIS : POSTGRESQL;
    const { remedy, mayPass = false } = knownRemedy(store, error) ?? {};
    return {
      code: error.code,
      message: `${store.name} ${remedy ? 'cannot be used' : 'does not answer'} (${error.reason})`,
      remedy:
        remedy ?? `see that it runs and that its URL is right (${store.variable}), then try again`,
      mayPass: mayPass || remedy === undefined,
    };
  }
  const { code, syscall, message } = (error ?? {}) as NodeJS.ErrnoException;
  if (code === 'ERR_INVALID_URL') {
    const remedy = 'see DATABASE_URL, REDIS_URL and SMTP_URL; `operator check-config` judges them';
    return { code: 'invalid_url', message: 'a URL of the settings cannot be read', remedy };
  }
  const remedy = SYSTEM_REMEDIES[`${syscall} ${code}`] ?? SYSTEM_REMEDIES[`${code}`];
  return code && remedy ? { code: code.toLowerCase(), message, remedy } : undefined;
}

/** Returns why the service did not start, for the operator. */
export function explained(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const trouble = troubleOf(error);
  if (trouble) return `${trouble.message}: ${trouble.remedy}`;
  // The messages of these say what is wrong and what to do; a stack trace would bury them.
  const isExplained = error instanceof ConfigurationProblems || 'code' in error;
  return isExplained ? error.message : String(error.stack);
}

interface Store {
  readonly name: string;
  readonly variable: string;
}

const POSTGRESQL: Store = { name: 'the database', variable: 'DATABASE_URL' };
const REDIS: Store = { name: 'Redis', variable: 'REDIS_URL' };

const credentials = ({ variable }: Store): string =>
  `correct the account and the password in ${variable}: ${PASSWORDS_IN_URLS}`;

/** Matched against the code (SQLSTATE, system, TLS) and the message of the driver's error. */
const STORE_REMEDIES: readonly (readonly [
  cause: RegExp,
  remedy: (store: Store) => string,
  mayPass?: boolean,
])[] = [
  [/^28|WRONGPASS|NOAUTH|AUTH called|invalid (?:username-)?password|SASL/, credentials],
  [/^3D000/, ({ variable }) => `make the database, or correct its name at the end of ${variable}`],
  // May pass: once there is room again, the store accepts writes by itself.
  [
    /^53100|No space left on device/,
    ({ name }) => `make room on the disk of ${name}: it takes writes again by itself`,
    true,
  ],
  [
    /^25006/,
    ({ variable }) =>
      `the server in ${variable} only reads: name the primary if it is a standby; otherwise see its ` +
      'default_transaction_read_only',
    // A failover may make the standby the primary.
    true,
  ],
  [
    /MISCONF/,
    () =>
      'Redis cannot save its data, most often because its disk is full: make room there; its own log ' +
      'says what it could not write',
    true,
  ],
  [
    /\bOOM\b/,
    () => 'Redis has reached its maxmemory: raise maxmemory, or give its machine more memory',
    true,
  ],
  [
    /^53300/,
    ({ variable }) =>
      `lower storage.database_connections, or raise max_connections of the server in ${variable}`,
    true,
  ],
  [/^42501|NOPERM/, ({ variable }) => `give the account of ${variable} the right to do that`],
  [/DB index/i, ({ variable }) => `correct the number of the database at the end of ${variable}`],
  [
    /^(ENOTFOUND|EAI_AGAIN)/,
    ({ variable }) => `correct the host in ${variable}: its name does not resolve here`,
    // The name of a container resolves only once it runs.
    true,
  ],
  [
    /CERT_HAS_EXPIRED|CERT_NOT_YET_VALID/,
    ({ variable }) =>
      `the certificate of the server in ${variable} has expired: renew it (or set this clock right)`,
  ],
  [
    /ALTNAME_INVALID/,
    ({ variable }) =>
      `the certificate of the server names other hosts: write one of those into ${variable}`,
  ],
  [
    /SELF_SIGNED|UNABLE_TO_|CERT_UNTRUSTED|INVALID_CA/,
    ({ variable }) =>
      `nobody whom this machine trusts signed the certificate of the server in ${variable}: name ` +
      'the file of its authority in NODE_EXTRA_CA_CERTS',
  ],
  [
    /CERT|SSL|TLS|EPROTO/,
    ({ variable }) => `see that ${variable} asks for TLS where the server has it, and only there`,
  ],
];

function knownRemedy(store: Store, error: StorageUnavailable) {
  const causes = causesOf(error.cause);
  const known = STORE_REMEDIES.find(([cause]) => causes.some((one) => cause.test(one)));
  return known && { remedy: known[1](store), mayPass: known[2] };
}

/** Returns each cause, its code first; a host with several addresses fails with one for each. */
function causesOf(error: unknown): string[] {
  if (!(error instanceof Error)) return [];
  const { code = '' } = error as NodeJS.ErrnoException;
  const inner = error instanceof AggregateError ? error.errors : [error.cause];
  return [`${code} ${error.message}`, ...inner.flatMap(causesOf)];
}

/** Keyed by system call and error code, or by the code alone. */
const SYSTEM_REMEDIES: Readonly<Record<string, string>> = {
  'listen EADDRINUSE':
    'end what listens there (often another Gatehouse; several share the port with server.reuse_port: true), ' +
    'or choose another port: server.port (PORT), ' +
    'server.operators_port (GATEHOUSE_OPERATORS_PORT)',
  'listen EACCES': 'choose a port above 1023, or let the system give this one to the service',
  'listen EADDRNOTAVAIL':
    'give server.host and server.operators_host an address that this machine has',
  'getaddrinfo ENOTFOUND': 'correct the name in server.host or server.operators_host',
  ENOSPC: 'make room on the disk',
  EROFS: 'let this process write there, or name another place: storage.data_directory',
  EACCES: 'let this process read and write there',
};
