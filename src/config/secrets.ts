/** The keys that sign cookies and derive tokens: given by the operator, or made once. */
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
import { makeAKey, type Secrets, shortestKey, variableOf } from './environment.ts';
import { type ConfigurationProblem, ConfigurationProblems } from './problems.ts';
import type { Settings } from './settings.ts';

/** Whoever reads another's file reads their keys: nobody but its owner may (as ssh demands). */
const OTHERS_MAY_READ = 0o077;

const getKeysBack =
  'restore it from a backup, or set GATEHOUSE_COOKIE_KEYS and GATEHOUSE_TOKEN_KEYS; new ones ' +
  `(${makeAKey}) end every session and refresh token`;

const key = z.string().min(shortestKey);
const keys = z.tuple([key], key);
const secretsFile = z.strictObject({ cookieKeys: keys, tokenKeys: keys });

/** What keeps these secrets from being used, found without writing anything. */
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
  message: 'is not set, and is needed with a database outside this process',
  remedy: `${makeAKey} and set ${path}, or ${path}_FILE to a file that holds it`,
});

/** Where an embedded deployment keeps the secrets that it made. */
export const secretsFileIn = (dataDirectory: string): string =>
  path.join(dataDirectory, 'secrets.json');

/**
 * The secrets of an embedded deployment: those of the environment, else those of
 * `secrets.json` in the data directory, which is written at the first start.
 *
 * @throws ConfigurationProblems when that file cannot be written or trusted.
 */
export function loadSecrets(given: Partial<Secrets>, dataDirectory: string): Secrets {
  const { cookieKeys, tokenKeys } = given;
  if (cookieKeys && tokenKeys) return { cookieKeys, tokenKeys };
  const file = secretsFileIn(dataDirectory);
  return { ...(readOwnSecrets(file) ?? makeSecretsFile(file)), ...given };
}

/**
 * The keys that are there, found without making any: undefined where not all of them are.
 *
 * @throws ConfigurationProblems when `secrets.json` cannot be trusted.
 */
export function findSecrets(
  { cookieKeys, tokenKeys }: Partial<Secrets>,
  { databaseUrl, dataDirectory }: Settings['storage'],
): Secrets | undefined {
  if (cookieKeys && tokenKeys) return { cookieKeys, tokenKeys };
  const kept =
    databaseUrl === undefined ? readSecretsFile(secretsFileIn(dataDirectory)) : undefined;
  return (
    kept && { cookieKeys: cookieKeys ?? kept.cookieKeys, tokenKeys: tokenKeys ?? kept.tokenKeys }
  );
}

/**
 * The same for a service. With new keys beside a database that was served with others every session
 * and refresh token would end, and nobody would know why.
 *
 * @throws ConfigurationProblems also when the file is missing beside a database.
 */
function readOwnSecrets(file: string): Secrets | undefined {
  const secrets = readSecretsFile(file);
  if (secrets === undefined && hasDatabase(path.dirname(file))) {
    throw problem(file, 'is missing beside an existing database', getKeysBack);
  }
  return secrets;
}

/**
 * What `secrets.json` holds, or undefined where there is none.
 *
 * @throws ConfigurationProblems when others may read the file, or it holds something else.
 */
function readSecretsFile(file: string): Secrets | undefined {
  let descriptor: number;
  try {
    descriptor = openSync(file, 'r');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return undefined;
    throw problem(file, `cannot be read (${code})`, 'see that it is a file this process may read');
  }
  try {
    // The open file is asked, not its name, so that what is checked is what is read.
    const { mode } = fstatSync(descriptor);
    if (mode & OTHERS_MAY_READ) {
      throw problem(
        file,
        `can be read or written by others (mode ${(mode & 0o777).toString(8)})`,
        `\`chmod 600 ${file}\`; if others had access, put new keys into it`,
      );
    }
    return secretsFile.parse(JSON.parse(readFileSync(descriptor, 'utf8')));
  } catch (error) {
    if (error instanceof ConfigurationProblems) throw error;
    // Neither the parser's message nor the content may show: both hold keys.
    throw problem(
      file,
      `does not hold cookieKeys and tokenKeys of at least ${shortestKey} characters each`,
      getKeysBack,
    );
  } finally {
    closeSync(descriptor);
  }
}

/**
 * Writes a complete file under a name of its own and links it to `file`: the link is the one
 * atomic step. Of two processes that start at once one wins, and both read the winner's.
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
        'let this process write to the data directory, or set GATEHOUSE_COOKIE_KEYS and ' +
          'GATEHOUSE_TOKEN_KEYS',
      );
    }
  } finally {
    rmSync(draft, { force: true });
  }
  const kept = readSecretsFile(file);
  if (kept) return kept;
  throw problem(file, 'was removed while it was made', 'start again');
}

/** Secrets as the first start of an embedded deployment makes them; not kept anywhere. */
export function newSecrets(): Secrets {
  const newKey = () => randomBytes(32).toString('base64url');
  return { cookieKeys: [newKey()], tokenKeys: [newKey()] };
}

const problem = (file: string, message: string, remedy: string) =>
  new ConfigurationProblems([{ path: file, message, remedy }]);
