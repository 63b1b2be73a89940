/** Reads the deployment files of this repository and the settings in them. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { mayBeInAFile, settingOf } from '../../src/config/environment.ts';
import { checkSettings, keysOfEnvironment } from '../config/configuration.ts';

export const ROOT = path.join(import.meta.dirname, '../..');
export const textOf = (name: string): string => readFileSync(path.join(ROOT, name), 'utf8');

export const VARIABLES = [...Object.keys(settingOf), ...mayBeInAFile, ...mayBeInAFile.map((name) => `${name}_FILE`)];

/** Seconds until main.ts ends the process, counted from the end of the shutdown delay. */
export const CLOSING = 10;

/** The settings that the service derives from this file, with keys and stores from the environment. */
export const settingsIn = (name: string) =>
  checkSettings({
    file: path.join(ROOT, name),
    environment: {
      ...keysOfEnvironment,
      DATABASE_URL: 'postgres://db/gatehouse',
      REDIS_URL: 'redis://redis',
    },
  });
