/** Reads an import file line by line, even if it contains invalid bytes. */
import { createWriteStream, existsSync } from 'node:fs';
import { type FileHandle, mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { systemClock } from '../../base/clock.ts';
import { Refusal } from '../../base/refusal.ts';
import type { BrokenLine, ImportSource, Numbered } from '../../changes/line.ts';
import { MAX_LINE_BYTES, readImportLine, TOO_LONG } from '../../changes/line-reader.ts';
import { WrongUsage } from '../command/arguments.ts';
import type { Surroundings } from '../command/operator.ts';

export interface ImportFile extends ImportSource {
  /** When the file was last modified; for standard input, when reading began. */
  readonly writtenAt: Date;
  close(): Promise<void>;
}

/**
 * Opens the file, or standard input for `-`. Input that can be read only once is copied to a
 * temporary file that only this user can read, and that is removed at the end.
 *
 * @throws WrongUsage if the file cannot be read
 */
export async function openImportFile(name: string, { stdin }: Pick<Surroundings, 'stdin'>): Promise<ImportFile> {
  const startedAt = new Date(systemClock());
  const opened = name === '-' ? await copyToTemporaryFile(stdin) : await openFile(name);
  const { handle, isCopy, close } = opened;
  const { mtime } = await handle.stat();
  const before = await versionOf(handle);

  async function refuseChange(): Promise<void> {
    if ((await versionOf(handle)) !== before) throw changedMeanwhile(name);
  }

  async function* lines(): AsyncIterable<(Numbered | BrokenLine)[]> {
    await refuseChange();
    yield* linesOf(handle);
    // Refuse a file that changed during the first reading, in which nothing was written yet.
    await refuseChange();
  }
  // The temporary copy has a new mtime, and another machine's clock may be ahead: use now.
  const writtenAt = isCopy || mtime > startedAt ? startedAt : mtime;
  return { lines, writtenAt, close };
}

interface OpenedFile {
  readonly handle: FileHandle;
  /** True for a temporary copy of input that can be read only once. */
  readonly isCopy: boolean;
  close(): Promise<void>;
}

async function openFile(name: string): Promise<OpenedFile> {
  const handle = await open(name, 'r').catch((error: NodeJS.ErrnoException) => {
    throw new WrongUsage(unreadable(name, error.code));
  });
  const status = await handle.stat();
  if (status.isFile()) return { handle, isCopy: false, close: () => handle.close() };
  if (status.isDirectory()) {
    await handle.close();
    throw new WrongUsage(`${name} is a directory: name the file with the lines`);
  }
  return copyToTemporaryFile(handle.createReadStream());
}

function unreadable(name: string, code: string | undefined): string {
  const folder = path.dirname(path.resolve(name));
  if (code === 'ENOENT' && !existsSync(folder)) {
    return `the folder ${folder} does not exist: create it, and write the file ${path.basename(name)} there`;
  }
  if (code === 'ENOENT') return `there is no file ${name}`;
  if (code === 'EACCES') {
    return (
      `this user may not read the file ${name}, or may not enter its folder: pass it on ` +
      `standard input (\`import - < ${name}\`)`
    );
  }
  return `the file ${name} cannot be read (${code})`;
}

async function copyToTemporaryFile(stream: NodeJS.ReadableStream): Promise<OpenedFile> {
  const directory = await mkdtemp(path.join(tmpdir(), 'gatehouse-import-'));
  const remove = (): Promise<void> => rm(directory, { recursive: true, force: true });
  try {
    const copy = path.join(directory, 'lines');
    await pipeline(stream, createWriteStream(copy, { mode: 0o600 }));
    const handle = await open(copy, 'r');
    return { handle, isCopy: true, close: () => handle.close().finally(remove) };
  } catch (error) {
    await remove();
    throw error;
  }
}

async function versionOf(handle: FileHandle): Promise<string> {
  const { size, mtimeMs } = await handle.stat();
  return `${size} ${mtimeMs}`;
}

function changedMeanwhile(name: string): Refusal {
  return new Refusal(
    'import_file_changed',
    `The file ${name} was changed while it was being read.`,
    'Import it again when it is complete. To avoid this, write it under another name first, then rename it.',
  );
}

/** Yields the lines in each piece of the file, without blank lines. */
async function* linesOf(handle: FileHandle): AsyncIterable<(Numbered | BrokenLine)[]> {
  let rest: Buffer = Buffer.alloc(0);
  let isTooLong = false;
  let number = 0;
  const take = (bytes: Buffer): (Numbered | BrokenLine)[] => {
    number += 1;
    const line = isTooLong ? { number, problems: [TOO_LONG] } : readImportLine(bytes, number);
    isTooLong = false;
    return line ? [line] : [];
  };

  for await (const piece of piecesOf(handle)) {
    const bytes = Buffer.concat([rest, piece]);
    const found: (Numbered | BrokenLine)[] = [];
    let begin = 0;
    for (let end = bytes.indexOf(LINE_END); end !== -1; end = bytes.indexOf(LINE_END, begin)) {
      found.push(...take(bytes.subarray(begin, end)));
      begin = end + 1;
    }
    rest = bytes.subarray(begin);
    if (rest.length > MAX_LINE_BYTES) {
      // Skip to the end of the line, without keeping its bytes.
      isTooLong = true;
      rest = Buffer.alloc(0);
    }
    yield found;
  }
  if (isTooLong || rest.length > 0) yield take(rest);
}

/** Reads from the beginning, without a stream: each would leave a listener on the handle. */
async function* piecesOf(handle: FileHandle): AsyncIterable<Buffer> {
  const buffer = Buffer.alloc(MAX_LINE_BYTES);
  let position = 0;
  for (;;) {
    const { bytesRead } = await handle.read(buffer, 0, buffer.length, position);
    if (bytesRead === 0) return;
    position += bytesRead;
    yield buffer.subarray(0, bytesRead);
  }
}

const LINE_END = '\n'.charCodeAt(0);
