/** The keys that sign cookies and derive tokens. The operator sets them, or the first start creates them. */
import { randomBytes } from 'node:crypto';
import {
  closeSync,
  fstatSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { z } from 'zod';
import { beginFirstStart, hasDatabase } from '../base/data-directory.ts';
import { MAKE_A_KEY, MIN_KEY_LENGTH, type Secrets, variableOf } from './environment.ts';
import { type ConfigurationProblem, ConfigurationProblems } from './problems.ts';
import type { Settings } from './settings.ts';

/** The mode bits of group and others. As in ssh, a key file that other users can access is refused. */
const OTHERS_MAY_READ = 0o077;

const GET_KEYS_BACK =
  'restore it from a backup, or set GATEHOUSE_COOKIE_KEYS and GATEHOUSE_TOKEN_KEYS; new ' +
  `keys (${MAKE_A_KEY}) end every session and refresh token`;

const key = z.string().min(MIN_KEY_LENGTH);
const keys = z.tuple([key], key);
const secretsFile = z.strictObject({ cookieKeys: keys, tokenKeys: keys });

/** Returns why these secrets cannot be used. Writes nothing. */
export function secretProblems(
  { cookieKeys, tokenKeys }: Partial<Secrets>,
  { databaseUrl, dataDirectory }: Settings['storage'],
): readonly ConfigurationProblem[] {
  if (cookieKeys && tokenKeys) return [];
  if (databaseUrl !== undefined) {
    return [
      ...(cookieKeys ? [] : [missing(variableOf.cookieKeys)]),
      ...(tokenKeys ? [] : [missing(variableOf.tokenKeys)]),
    ];
  }
  try {
    readOwnSecrets(secretsFileIn(dataDirectory));
    return [];
  } catch (error) {
    if (error instanceof ConfigurationProblems) return error.problems;
    throw error;
  }
}

const missing = (path: string): ConfigurationProblem => ({
  path,
  message: 'is not set, but is required with an external database',
  remedy: `${MAKE_A_KEY} and set ${path}, or ${path}_FILE to a file that holds it`,
});

/** The file with the created secrets of an embedded deployment. */
export const secretsFileIn = (dataDirectory: string): string => path.join(dataDirectory, 'secrets.json');

/**
 * Returns the secrets of an embedded deployment. They come from the environment, or else from `secrets.json` in the
 * data directory, which the first start writes.
 * @throws ConfigurationProblems if that file cannot be written or trusted
 */
export function loadSecrets(given: Partial<Secrets>, dataDirectory: string): Secrets {
  const { cookieKeys, tokenKeys } = given;
  if (cookieKeys && tokenKeys) return { cookieKeys, tokenKeys };
  const file = secretsFileIn(dataDirectory);
  return { ...(readOwnSecrets(file) ?? makeSecretsFile(file)), ...given };
}

/**
 * Returns the existing keys, and creates none. Undefined unless all of them exist.
 * @throws ConfigurationProblems if `secrets.json` cannot be trusted
 */
export function findSecrets(
  { cookieKeys, tokenKeys }: Partial<Secrets>,
  { databaseUrl, dataDirectory }: Settings['storage'],
): Secrets | undefined {
  if (cookieKeys && tokenKeys) return { cookieKeys, tokenKeys };
  const kept = databaseUrl === undefined ? readSecretsFile(secretsFileIn(dataDirectory)) : undefined;
  return kept && { cookieKeys: cookieKeys ?? kept.cookieKeys, tokenKeys: tokenKeys ?? kept.tokenKeys };
}

/**
 * Like `readSecretsFile`, but prevents a service from replacing the keys of an existing database. New keys would end
 * every session and refresh token without an explanation.
 *
 * @throws ConfigurationProblems also if the file is missing although the database exists.
 */
function readOwnSecrets(file: string): Secrets | undefined {
  const secrets = readSecretsFile(file);
  if (secrets === undefined && hasDatabase(path.dirname(file))) {
    throw problem(file, 'is missing, but its database exists', GET_KEYS_BACK);
  }
  return secrets;
}

/**
 * Returns undefined if the file does not exist.
 * @throws ConfigurationProblems if others may read the file, or if its content is not valid
 */
function readSecretsFile(file: string): Secrets | undefined {
  let descriptor: number;
  try {
    descriptor = openSync(file, 'r');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return undefined;
    throw problem(file, `cannot be read (${code})`, 'check that it is a file that this process may read');
  }
  try {
    // Check the open file, and not its path, so that the checked file is the one that is read.
    const { mode } = fstatSync(descriptor);
    if (mode & OTHERS_MAY_READ) {
      throw problem(
        file,
        `is readable or writable by other users (mode ${(mode & 0o777).toString(8)})`,
        `\`chmod 600 ${file}\`; if others had access, replace the keys in it`,
      );
    }
    return secretsFile.parse(JSON.parse(readFileSync(descriptor, 'utf8')));
  } catch (error) {
    if (error instanceof ConfigurationProblems) throw error;
    // Show neither the parser's message nor the content, because both contain keys.
    throw problem(
      file,
      `does not contain cookieKeys and tokenKeys of at least ${MIN_KEY_LENGTH} characters each`,
      GET_KEYS_BACK,
    );
  } finally {
    closeSync(descriptor);
  }
}

/**
 * Writes a complete file under a unique name, then links it to `file` in one atomic step. If two processes start at
 * once, one of them creates the link, and both read its file.
 */
function makeSecretsFile(file: string): Secrets {
  const draft = `${file}.${randomBytes(8).toString('hex')}`;
  const secrets = newSecrets();
  try {
    mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 });
    beginFirstStart(path.dirname(file));
    const descriptor = openSync(draft, 'wx', 0o600);
    writeFileSync(descriptor, `${JSON.stringify(secrets, null, 2)}\n`);
    fsyncSync(descriptor);
    closeSync(descriptor);
    linkSync(draft, file);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'EEXIST') {
      throw problem(
        file,
        `cannot be written (${code})`,
        'let this process write to the data directory, or set GATEHOUSE_COOKIE_KEYS and GATEHOUSE_TOKEN_KEYS',
      );
    }
  } finally {
    rmSync(draft, { force: true });
  }
  const kept = readSecretsFile(file);
  if (kept) return kept;
  throw problem(file, 'was removed while it was being created', 'start again');
}

/** Creates secrets like those of the first start of an embedded deployment. Does not store them. */
export function newSecrets(): Secrets {
  const newKey = () => randomBytes(32).toString('base64url');
  return { cookieKeys: [newKey()], tokenKeys: [newKey()] };
}

const problem = (file: string, message: string, remedy: string) =>
  new ConfigurationProblems([{ path: file, message, remedy }]);
