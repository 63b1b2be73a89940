/** A node stores a copy of its settings file, which commands use while the file is refused. */
import { createHash, randomBytes } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { Logger } from 'pino';

export interface SettingsCopy {
  /** Where the node stores its copy; undefined if the node has no folder for it. */
  readonly file: string | undefined;
  /** The text of the settings file. It contains no values of the environment. */
  readonly text: string;
  /** The path of the settings file. */
  readonly original: string;
  /** Paths at which an earlier start may have left a copy of its settings, which may name other databases. */
  readonly outdated: readonly string[];
}

/** The last line of a copy, which names the settings file. A truncated copy lacks the line, and is not used. */
const mark = (original: string): string => `\n# A copy of ${original}\n`;

/** The file names of drafts of a copy. */
const DRAFT = /^\.settings-copy-[0-9a-f]{12}\.yaml\.[0-9a-f]{12}$/;
/** A draft is renamed at once, so an older draft is from a process that was killed. */
const DRAFT_MS = 60_000;

/**
 * Returns a different name for each settings file, so that several deployments can have the same state folder.
 * @param directory the state folder of the systemd unit, or else the data directory of an embedded database
 */
export function copyIn(directory: string, original: string): string {
  const digest = createHash('sha256').update(original).digest('hex');
  return path.resolve(directory, `.settings-copy-${digest.slice(0, 12)}.yaml`);
}

/**
 * Replaces the file in one step, so that a command never reads a part of it, and removes outdated copies. A failure is
 * only logged, because a node works without the copy.
 */
export function keepCopy({ file, text, original, outdated }: SettingsCopy, log: Pick<Logger, 'warn'>): void {
  try {
    if (file !== undefined) writeCopy(file, text + mark(original));
  } catch (err) {
    log.warn({ err }, 'no copy of the settings was kept: commands depend on the settings file');
  }
  for (const other of outdated) {
    try {
      if (typeof readCopy(other, original) === 'object') rmSync(other);
    } catch (err) {
      // The systemd unit may write only to its state folder.
      log.warn({ err }, 'an outdated copy of the settings remains: commands without STATE_DIRECTORY may use it');
    }
  }
}

function writeCopy(file: string, text: string): void {
  const draft = `${file}.${randomBytes(6).toString('hex')}`;
  mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 });
  try {
    removeDrafts(path.dirname(file));
    writeFileSync(draft, text, { flag: 'wx', mode: 0o600 });
    renameSync(draft, file);
  } finally {
    rmSync(draft, { force: true });
  }
}

/**
 * Removes drafts of processes that were killed before they could rename them, because drafts contain secrets of the
 * settings file. Copies of other settings files stay, because other containers may use the same folder.
 */
function removeDrafts(directory: string): void {
  for (const name of readdirSync(directory)) {
    const file = path.join(directory, name);
    if (DRAFT.test(name) && (statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0) < Date.now() - DRAFT_MS) {
      rmSync(file, { force: true });
    }
  }
}

/** Returns the text of a copy of `original` and its time. If there is none, returns the reason as a text. */
export function readCopy(copy: string | undefined, original: string) {
  if (copy === undefined) return 'no node of this machine keeps a copy of its settings';
  try {
    const text = readFileSync(copy, 'utf8');
    if (!text.endsWith(mark(original))) return `${copy} is incomplete`;
    return { text, keptAt: statSync(copy).mtime.toISOString() };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return code === 'ENOENT' ? `there is no copy ${copy} of a node's settings` : `${copy} cannot be read (${code})`;
  }
}
