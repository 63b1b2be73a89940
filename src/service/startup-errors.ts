/** Explains failures outside the program to the operator, at the start and in every command. */
import { Refusal } from '../base/refusal.ts';
import { ConfigurationProblems } from '../config/problems.ts';
import { PASSWORDS_IN_URLS } from '../config/urls.ts';
import { STOPPED_INSIDE, StorageUnavailable } from '../storage/storage-unavailable.ts';

export interface Trouble {
  /** A stable code, because scripts may compare it. */
  readonly code: string;
  readonly message: string;
  readonly remedy: string;
  /** True if the failure may soon end by itself. */
  readonly mayPass?: boolean;
}

/** Returns undefined for errors of this program itself. */
export function troubleOf(thrown: unknown): Trouble | undefined {
  // The connection of a migration throws errors of `pg` unchanged.
  const lacksPrivilege = (thrown as NodeJS.ErrnoException | undefined)?.code === '42501';
  const error =
    lacksPrivilege && !(thrown instanceof StorageUnavailable) ? new StorageUnavailable('postgresql', thrown) : thrown;
  if (error instanceof Refusal) return error;
  if (error instanceof StorageUnavailable && causesOf(error.cause).some((one) => one.startsWith(STOPPED_INSIDE))) {
    return {
      code: error.code,
      message: `the database undid a change, because this process was stopped in the middle of it, or did not continue in time (${error.reason})`,
      remedy: 'try again: nothing of that change was done, and changes that were completed before it stay',
      mayPass: true,
    };
  }
  // The error's own text is for clients: it names neither the store nor the cause.
  if (error instanceof StorageUnavailable && error.code === 'statement_too_long') {
    return {
      code: error.code,
      message:
        'the database works, but a statement was stopped at its time limit: it had too much to do, or ' +
        `waited for another session (${error.reason})`,
      remedy:
        'try again when the database is less busy, or with less at once (--limit, fewer lines); if ' +
        'it always fails, report it with the number of rows of your deployment',
      mayPass: true,
    };
  }
  if (error instanceof StorageUnavailable) {
    const store = error.reason.startsWith('redis') ? REDIS : POSTGRESQL;
    const { remedy, mayPass = false } = knownRemedy(store, error) ?? {};
    return {
      code: error.code,
      message: `${store.name} ${remedy ? 'cannot be used' : 'does not answer'} (${error.reason})`,
      remedy: remedy ?? `check that it is running and that its URL is correct (${store.variable}), then try again`,
      mayPass: mayPass || remedy === undefined,
    };
  }
  const { code, syscall, message } = (error ?? {}) as NodeJS.ErrnoException;
  if (code === 'ERR_INVALID_URL') {
    const remedy = 'check DATABASE_URL, REDIS_URL and SMTP_URL with `operator check-config`';
    return { code: 'invalid_url', message: 'a URL in the settings is invalid', remedy };
  }
  const remedy = SYSTEM_REMEDIES[`${syscall} ${code}`] ?? SYSTEM_REMEDIES[`${code}`];
  return code && remedy ? { code: code.toLowerCase(), message, remedy } : undefined;
}

/** Returns the reason why the service did not start, for the operator. */
export function explained(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const trouble = troubleOf(error);
  if (trouble) return `${trouble.message}: ${trouble.remedy}`;
  // The message contains the problem and the remedy, so print no stack trace.
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

/** Remedies for drivers' errors. A pattern is matched with an error's code (SQLSTATE, system, TLS) and message. */
const STORE_REMEDIES: readonly (readonly [cause: RegExp, remedy: (store: Store) => string, mayPass?: boolean])[] = [
  [/^28|WRONGPASS|NOAUTH|AUTH called|invalid (?:username-)?password|SASL/, credentials],
  [/^3D000/, ({ variable }) => `create the database, or correct its name at the end of ${variable}`],
  // This failure may end by itself: once the disk has space again, the store accepts writes.
  [
    /^53100|No space left on device/,
    ({ name }) => `free space on the disk of ${name}: it then accepts writes again without a restart`,
    true,
  ],
  [
    /^25006/,
    ({ variable }) =>
      `the server in ${variable} is read-only: use the primary if it is a standby; ` +
      'otherwise check its default_transaction_read_only',
    // This failure may end by itself: a failover may make the standby the primary.
    true,
  ],
  [
    /MISCONF/,
    () =>
      'Redis cannot save its data, usually because its disk is full: free disk space, and ' +
      'see the log of Redis for the cause',
    true,
  ],
  [
    /READONLY/,
    ({ variable }) =>
      `point ${variable} to the master, because this Redis is a replica; with Sentinel, wait until it has named a master`,
    // Retry, because a failover may make this replica the master.
    true,
  ],
  [/\bOOM\b/, () => 'Redis has reached its maxmemory: raise maxmemory, or give its machine more memory', true],
  [
    /^53300/,
    ({ variable }) => `lower storage.database_connections, or raise max_connections of the server in ${variable}`,
    true,
  ],
  [
    /unknown command|INFO shows neither/i,
    () => 'allow the commands that docs/operations/deploy.md lists under "The stores", or use Redis 6.2 or later',
  ],
  [
    /^42501 .*\bdatabase\b/i,
    ({ variable }) =>
      `as a superuser, give the database to the role in ${variable}: \`ALTER DATABASE … OWNER TO\` that role; or grant ` +
      'it CONNECT and TEMPORARY',
  ],
  [
    /^42501 .*schema/i,
    ({ variable }) =>
      `give the schema to the role in ${variable}: \`ALTER SCHEMA public OWNER TO\` that role, as a superuser, in that ` +
      'database; if a superuser restored a dump, the tables need this too: docs/operations/incidents.md, ' +
      '"A restore gave the tables to another role", has the statements',
  ],
  [
    /^42501/,
    () =>
      'the tables belong to another role, usually because a superuser restored them: docs/operations/incidents.md, ' +
      '"A restore gave the tables to another role", has the statements; otherwise grant the privilege that is missing',
  ],
  [
    /NOPERM|executing the script can't run/,
    ({ variable }) =>
      `grant the missing privilege to the account in ${variable}: docs/operations/deploy.md has the whole line of this ` +
      'user for redis.conf, under "The stores"',
  ],
  [/DB index/i, ({ variable }) => `correct the database number at the end of ${variable}`],
  [
    /^(ENOTFOUND|EAI_AGAIN)/,
    ({ variable }) => `correct the host in ${variable}, or add it to the DNS: it does not resolve on this machine`,
    // This failure may end by itself: the name of a container resolves only while the container runs.
    true,
  ],
  [
    /CERT_HAS_EXPIRED|CERT_NOT_YET_VALID/,
    ({ variable }) =>
      `the certificate of the server in ${variable} has expired or is not yet valid: renew ` +
      'it, or correct the clock of this machine',
  ],
  [
    /ALTNAME_INVALID/,
    ({ variable }) =>
      `the certificate of the server is for other host names: use one of them in ${variable}, or get one for that host`,
  ],
  [
    /SELF_SIGNED|UNABLE_TO_|CERT_UNTRUSTED|INVALID_CA/,
    ({ variable }) =>
      `this machine does not trust the certificate of the server in ${variable}: set ` +
      'NODE_EXTRA_CA_CERTS to the file of its CA, and let it send the intermediate certificates, too',
  ],
  [
    /CERT|SSL|TLS|EPROTO/,
    ({ variable }) => `check ${variable}: it must ask for TLS if the server uses it, and only then`,
  ],
];

function knownRemedy(store: Store, error: StorageUnavailable) {
  const causes = causesOf(error.cause);
  const known = STORE_REMEDIES.find(([cause]) => causes.some((one) => cause.test(one)));
  return known && { remedy: known[1](store), mayPass: known[2] };
}

/** Returns a remedy for a URL or a certificate with which no connection was possible. */
export const connectionRemedy = (error: Error, variable: string): string | undefined =>
  STORE_REMEDIES.find(([cause]) => causesOf(error).some((one) => cause.test(one)))?.[1]({ name: variable, variable });

/** Returns code and message of the error and its causes, for example one cause for each address of a host. */
function causesOf(error: unknown): string[] {
  if (!(error instanceof Error)) return [];
  const { code = '' } = error as NodeJS.ErrnoException;
  const inner = error instanceof AggregateError ? error.errors : [error.cause];
  return [`${code} ${error.message}`, ...inner.flatMap(causesOf)];
}

const SYSTEM_REMEDIES: Readonly<Record<string, string>> = {
  'listen EADDRINUSE':
    'stop the process that listens there (often another Gatehouse; with server.reuse_port: true several share the ' +
    'port), or choose another port: server.port (PORT), server.operators_port (GATEHOUSE_OPERATORS_PORT)',
  'listen EACCES': 'choose a port above 1023, or allow the service to use this one',
  'listen EADDRNOTAVAIL': 'set server.host and server.operators_host to addresses of this machine',
  'getaddrinfo ENOTFOUND': 'correct the host name in server.host or server.operators_host',
  ENOSPC: 'free space on the disk',
  EROFS: 'make it writable for this process, or choose another directory: storage.data_directory',
  EACCES: 'make it readable and writable for this process',
};
