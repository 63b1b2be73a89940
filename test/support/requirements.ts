/** Suites that need a program that a machine may not have. */
import { execFileSync } from 'node:child_process';
import { findProgram, postgresFolders, runsAsRoot } from './programs.ts';

export interface Requirement {
  /** The path of the program; undefined if this machine does not have it. */
  readonly program: string | undefined;
  readonly remedy: string;
}

/** Like `describe` if the machine meets the requirements; otherwise one test says why not: pending, but failing in CI. */
export function describeOn(requirements: readonly Requirement[], title: string, body: () => void): void {
  const missing = requirements.filter(({ program }) => program === undefined);
  if (missing.length === 0) {
    describe(title, body);
    return;
  }
  const reason = `needs ${missing.map(({ remedy }) => remedy).join(' and ')}`;
  describe(title, () => {
    if (process.env.CI === 'true') {
      // Fail in CI, which installs everything: there a suite must not be left out.
      it(reason, () => {
        throw new Error(reason);
      });
    } else it(reason);
  });
}

/** Returns the program's path. @throws Error if the program is missing, because the suite does not use `describeOn` */
export function required(requirement: Requirement): string {
  if (requirement.program === undefined) throw new Error(`needs ${requirement.remedy}`);
  return requirement.program;
}

export const redisServer: Requirement = {
  // Another server to test with, such as Valkey.
  program: process.env.GATEHOUSE_TEST_REDIS ?? findProgram('redis-server'),
  remedy: 'redis-server (Debian package redis-server)',
};

/** The system account for a PostgreSQL that root starts; Debian's package creates the account. */
export const postgresAccount = 'postgres';

export const postgresServer: Requirement = {
  program: !runsAsRoot || accountExists() ? findProgram('postgres', postgresFolders()) : undefined,
  remedy: 'postgres and its account (Debian package postgresql)',
};

export const openssl: Requirement = {
  program: findProgram('openssl'),
  remedy: 'openssl (Debian package openssl)',
};

/** Prefer the headless shell: it renders the same pages with half the CPU time of a full Chromium. */
export const chromium: Requirement = {
  program: findProgram('chromium-headless-shell') ?? findProgram('chromium') ?? findProgram('chromium-browser'),
  remedy: 'chromium (Debian package chromium-headless-shell)',
};

function accountExists(): boolean {
  try {
    execFileSync('id', ['-u', postgresAccount], { stdio: 'ignore' });
    return findProgram('setpriv') !== undefined;
  } catch {
    return false;
  }
}
