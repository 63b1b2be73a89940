/** What the tests of deployments read: the files of this repository and the settings in them. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { mayBeInAFile, settingOf } from '../../src/config/environment.ts';
import { checkSettings, keysOfEnvironment } from '../config/configuration.ts';

export const ROOT = path.join(import.meta.dirname, '../..');
export const textOf = (name: string): string => readFileSync(path.join(ROOT, name), 'utf8');

/** Names of the variables that the service reads. */
export const VARIABLES = [
  ...Object.keys(settingOf),
  ...mayBeInAFile,
  ...mayBeInAFile.map((name) => `${name}_FILE`),
];

/** Seconds that a process takes from SIGTERM on, at most: main.ts ends it by itself then. */
export const CLOSING = 10;

/** What the service makes of a settings file where the environment gives the rest. */
export const settingsIn = (name: string) =>
  checkSettings({
    file: path.join(ROOT, name),
    environment: {
      ...keysOfEnvironment,
      DATABASE_URL: 'postgres://db/gatehouse',
      REDIS_URL: 'redis://redis',
    },
  });
