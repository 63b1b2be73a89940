/** Reads an import file line by line. Invalid bytes make a line invalid, and do not end the reading. */
import { type FileHandle, open } from 'node:fs/promises';
import { systemClock } from '../../base/clock.ts';
import { Refusal } from '../../base/refusal.ts';
import type { BrokenLine, Numbered } from '../../changes/line.ts';
import { MAX_LINE_BYTES, readImportLine, TOO_LONG } from '../../changes/line-reader.ts';
import { WrongUsage } from '../command/arguments.ts';
import type { Surroundings } from '../command/operator.ts';

type Pieces = AsyncIterable<Buffer | string>;

export interface ImportFile extends AsyncDisposable {
  /** When the file was last modified; for standard input, when reading began. */
  readonly writtenAt: Date;
  /** Yields every line that is not blank. Can be called only once. */
  lines(): AsyncIterable<(Numbered | BrokenLine)[]>;
}

/** @param name the path of the file, or `-` for standard input @throws WrongUsage if the file cannot be read */
export async function openImportFile(name: string, { stdin }: Pick<Surroundings, 'stdin'>): Promise<ImportFile> {
  const startedAt = new Date(systemClock());
  if (name === '-') return { writtenAt: startedAt, lines: () => linesOf(stdin), async [Symbol.asyncDispose]() {} };
  const handle = await open(name, 'r').catch((error: NodeJS.ErrnoException) => {
    throw new WrongUsage(unreadable(name, error.code));
  });
  const close = { [Symbol.asyncDispose]: () => handle.close() };
  const status = await handle.stat();
  if (status.isDirectory()) {
    await handle.close();
    throw new WrongUsage(`${name} is a directory: name the file with the lines`);
  }
  const pieces = (): Pieces => handle.createReadStream({ autoClose: false, highWaterMark: MAX_LINE_BYTES });
  if (!status.isFile()) return { writtenAt: startedAt, lines: () => linesOf(pieces()), ...close };

  const before = await versionOf(handle);
  async function* lines(): AsyncIterable<(Numbered | BrokenLine)[]> {
    yield* linesOf(pieces());
    // Throwing is safe here, because all lines are read before the import changes any record.
    if ((await versionOf(handle)) !== before) throw changedMeanwhile(name);
  }
  // A modification time in the future comes from a machine whose clock is ahead, so use the present time instead.
  return { writtenAt: status.mtime > startedAt ? startedAt : status.mtime, lines, ...close };
}

function unreadable(name: string, code: string | undefined): string {
  if (code === 'ENOENT') return `there is no file ${name}`;
  if (code === 'EACCES') {
    return (
      `this user may not read the file ${name}, or may not enter its folder: pass it on ` +
      `standard input (\`import - < ${name}\`)`
    );
  }
  return `the file ${name} cannot be read (${code})`;
}

async function versionOf(handle: FileHandle): Promise<string> {
  const { size, mtimeMs } = await handle.stat();
  return `${size} ${mtimeMs}`;
}

function changedMeanwhile(name: string): Refusal {
  return new Refusal(
    'import_file_changed',
    `The file ${name} was changed while it was being read.`,
    'Import the file again when it is complete. Next time, write it under another name first, then rename it.',
  );
}

/** Yields, for each piece of the file, the lines that it completes, without blank lines. */
async function* linesOf(pieces: Pieces): AsyncIterable<(Numbered | BrokenLine)[]> {
  let rest: Buffer = Buffer.alloc(0);
  let isTooLong = false;
  let number = 0;
  const take = (bytes: Buffer): (Numbered | BrokenLine)[] => {
    number += 1;
    const line = isTooLong ? { number, problems: [TOO_LONG] } : readImportLine(bytes, number);
    isTooLong = false;
    return line ? [line] : [];
  };

  for await (const piece of pieces) {
    const bytes = Buffer.concat([rest, Buffer.from(piece)]);
    const found: (Numbered | BrokenLine)[] = [];
    let begin = 0;
    for (let end = bytes.indexOf(LINE_END); end !== -1; end = bytes.indexOf(LINE_END, begin)) {
      found.push(...take(bytes.subarray(begin, end)));
      begin = end + 1;
    }
    rest = bytes.subarray(begin);
    if (rest.length > MAX_LINE_BYTES) {
      // Drop the bytes of a line that is too long, up to its end.
      isTooLong = true;
      rest = Buffer.alloc(0);
    }
    yield found;
  }
  if (isTooLong || rest.length > 0) yield take(rest);
}

const LINE_END = '\n'.charCodeAt(0);
