/** The copy of the settings file that a node keeps, for commands that run while the file is refused. */
import { mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';

export interface SettingsCopy {
  readonly file: string;
  readonly text: string;
}

/** The end of a copy names the settings file: neither a copy of another file nor half a copy is used. */
const mark = (original: string): string => `\n# A copy of ${original}\n`;

/** Returns the place of the copy: the state folder of the unit, or else the data directory of an embedded database. */
export function copyFile(
  stateDirectory: string | undefined,
  { databaseUrl, dataDirectory }: { readonly databaseUrl?: string | undefined; readonly dataDirectory: string },
): string | undefined {
  const directory = stateDirectory ?? (databaseUrl === undefined ? dataDirectory : undefined);
  return directory && path.resolve(directory, '.settings-copy.yaml');
}

/** Returns the copy to keep: the text of the file, and nothing of the environment, whose secrets stay there. */
export const copyOf = (
  copy: string | undefined,
  { file, text = '{}' }: { readonly file: string; readonly text: string | undefined },
): SettingsCopy | undefined =>
  copy === undefined || copy === file ? undefined : { file: copy, text: text + mark(file) };

/** Replaces the file in one step, so that a command never reads half of it. @throws if it cannot be written */
export function keepCopy({ file, text }: SettingsCopy): void {
  const draft = `${file}.${process.pid}`;
  mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 });
  try {
    // A process with the same ID may have been killed here.
    rmSync(draft, { force: true });
    writeFileSync(draft, text, { flag: 'wx', mode: 0o600 });
    renameSync(draft, file);
  } finally {
    rmSync(draft, { force: true });
  }
}

/** Returns the text of a copy of `original` and when it was kept; or, as text, why there is none. */
export function readCopy(copy: string | undefined, original: string) {
  if (copy === undefined) return 'no node of this machine keeps a copy of its settings';
  try {
    const text = readFileSync(copy, 'utf8');
    if (!text.endsWith(mark(original))) return `${copy} is the copy of another settings file`;
    return { text, keptAt: statSync(copy).mtime.toISOString() };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return code === 'ENOENT' ? `there is no copy ${copy} of a node's settings` : `${copy} cannot be read (${code})`;
  }
}
