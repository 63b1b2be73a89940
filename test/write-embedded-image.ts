/** `npm run embedded-image`: writes the image from which new embedded databases are unpacked. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { brotliCompressSync, constants } from 'node:zlib';
import { PGlite } from '@electric-sql/pglite';
import { CONTROL_FILE, IMAGE, type ImageIndex, LAST_FILE, LOG_SEGMENT } from '../src/storage/embedded/cluster-image.ts';

/** PostgreSQL removes these caches at each start. */
const CACHE = /(^|\/)pg_internal\.init$/;
/** XLOG_BLCKSZ: bytes in a page of the write-ahead log. */
const LOG_PAGE = 8_192;
/** SizeOfXLogLongPHD: bytes in the header of the first page of a segment. */
const LOG_HEADER = 40;
/** Offset in ControlFileData of `checkPoint`, the place of the last checkpoint in the log. */
const LAST_CHECKPOINT = 32;

/** Returns the folders and files of a cluster that PGlite's `initdb` has made and that was closed. */
export function listCluster(cluster: string): { folders: string[]; files: string[] } {
  const entries = readdirSync(cluster, { recursive: true, withFileTypes: true });
  const namesOf = (found: typeof entries): string[] =>
    found.map((entry) => path.relative(cluster, path.join(entry.parentPath, entry.name))).sort();
  const folders = namesOf(entries.filter((entry) => entry.isDirectory()));
  const files = namesOf(entries.filter((entry) => entry.isFile()));
  return { folders, files: files.filter((name) => !CACHE.test(name)) };
}

/**
 * Returns the content of a file as the image has it. Of the log, only the checkpoint at which the
 * database was closed is kept: PostgreSQL starts from it, and reads nothing before it.
 */
export function imageContent(cluster: string, name: string): Buffer {
  const content = readFileSync(path.join(cluster, name));
  if (!LOG_SEGMENT.test(name)) return content;
  const place = readFileSync(path.join(cluster, CONTROL_FILE)).readBigUInt64LE(LAST_CHECKPOINT);
  const checkpoint = Number(place % BigInt(content.length));
  return content.fill(0, LOG_HEADER, checkpoint - (checkpoint % LOG_PAGE));
}

function packCluster(cluster: string): Buffer {
  const { folders, files } = listCluster(cluster);
  const ordered = [...files.filter((name) => name !== LAST_FILE), LAST_FILE];
  const contents = ordered.map((name) => [name, imageContent(cluster, name)] as const);
  const index: ImageIndex = {
    folders,
    files: contents.map(([name, content]) => [name, content.length]),
  };
  const line = Buffer.from(`${JSON.stringify(index)}\n`);
  return brotliCompressSync(Buffer.concat([line, ...contents.map(([, content]) => content)]), {
    params: { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_LGWIN]: 24 },
  });
}

async function main(): Promise<void> {
  const cluster = mkdtempSync(path.join(tmpdir(), 'gatehouse-image-'));
  try {
    await (await PGlite.create(cluster)).close();
    for (const name of readdirSync(path.dirname(IMAGE))) {
      if (name.endsWith('.image.br')) rmSync(path.join(path.dirname(IMAGE), name));
    }
    const image = packCluster(cluster);
    writeFileSync(IMAGE, image);
    console.log(`${path.relative(process.cwd(), IMAGE)}: ${image.length} bytes`);
  } finally {
    rmSync(cluster, { recursive: true });
  }
}

if (import.meta.main) await main();
