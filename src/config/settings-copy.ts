/** The copy of the settings file that a node keeps, for commands that run while the file is refused. */
import { randomBytes } from 'node:crypto';
import { closeSync, fsyncSync, mkdirSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';

export interface SettingsCopy {
  readonly file: string;
  /** The text of the settings file as it was taken; undefined if this deployment keeps no copy there. */
  readonly text: string | undefined;
}

/** Names the settings file at the end of its copy: a copy of another file is not used. */
const mark = (original: string): string => `\n# A copy of ${original}\n`;

interface Storage {
  readonly databaseUrl?: string | undefined;
  readonly dataDirectory: string;
}

const copyIn = (directory: string): string => path.join(directory, 'settings.yaml');

/** Returns the place of the copy: the state folder of the unit, or else the data directory of an embedded database. */
export function copyFile(stateDirectory: string | undefined, storage: Storage): string | undefined {
  const { databaseUrl, dataDirectory } = storage;
  const directory = stateDirectory ?? (databaseUrl === undefined ? dataDirectory : undefined);
  return directory && copyIn(directory);
}

/** Returns the copy to keep: the text of the file, and nothing of the environment, whose secrets stay there. */
export function copyOf(
  { file, text = '{}' }: { readonly file: string; readonly text: string | undefined },
  stateDirectory: string | undefined,
  storage: Storage,
): SettingsCopy {
  const kept = copyFile(stateDirectory, storage);
  if (kept !== undefined) return { file: kept, text: text + mark(file) };
  return { file: copyIn(storage.dataDirectory), text: undefined };
}

/** Replaces the file in one step, so that a command never reads half of it. @throws if it cannot be written */
export function keepCopy({ file, text }: SettingsCopy): void {
  // An older copy in the data directory names the embedded database that this node had before.
  if (text === undefined) {
    rmSync(file, { force: true });
    return;
  }
  const draft = `${file}.${randomBytes(8).toString('hex')}`;
  mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 });
  try {
    const descriptor = openSync(draft, 'wx', 0o600);
    try {
      writeFileSync(descriptor, text);
      fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
    renameSync(draft, file);
  } finally {
    rmSync(draft, { force: true });
  }
}

/** Returns the text of a copy of `original`; undefined if there is none. */
export function readCopy(copy: string, original: string): string | undefined {
  try {
    const text = readFileSync(copy, 'utf8');
    return text.endsWith(mark(original)) ? text : undefined;
  } catch {
    return undefined;
  }
}
