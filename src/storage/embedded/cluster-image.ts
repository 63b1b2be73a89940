/** Writes the files of a new database from an image: `initdb` of PGlite takes 300 MB more. */
import { randomFillSync } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { brotliDecompressSync } from 'node:zlib';

/** The beginning of an image, as one line of JSON. The contents of the files follow in this order. */
export interface ImageIndex {
  readonly folders: readonly string[];
  readonly files: readonly (readonly [name: string, bytes: number])[];
}

/** The image ends with this file, by which PGlite and Gatehouse recognize a database. */
export const LAST_FILE = 'PG_VERSION';
export const CONTROL_FILE = 'global/pg_control';
/** The segments of the write-ahead log. */
export const LOG_SEGMENT = /^pg_wal\/[0-9A-F]{24}$/;
/** Offsets in ControlFileData of PostgreSQL 18 (catalog/pg_control.h). */
export const CONTROL = { systemIdentifier: 0, nonce: 257, nonceEnd: 289, checksum: 292 } as const;
/** Offset of `xlp_sysid` in the first page of each segment (access/xlog_internal.h). */
const LOG_SYSTEM_IDENTIFIER = 24;

/**
 * The image for the installed version of PGlite, made by `npm run embedded-image`. The version is
 * part of the name, so another version of PGlite finds no image.
 */
export const IMAGE = path.join(import.meta.dirname, `pglite-${pgliteVersion()}.image.br`);

/**
 * Writes the files of a new database into the folder, with its own system identifier. PG_VERSION is
 * the last file, so a start after a crash finds no database and writes all files again. Files are not
 * flushed to the disk, because PGlite flushes none either.
 *
 * @returns false if there is no image for the installed version of PGlite: PGlite then runs `initdb`
 */
export function unpackImage(cluster: string, image = IMAGE): boolean {
  if (!existsSync(image)) return false;
  const content = brotliDecompressSync(readFileSync(image));
  const endOfIndex = content.indexOf('\n');
  const { folders, files } = JSON.parse(content.toString('utf8', 0, endOfIndex)) as ImageIndex;
  const systemIdentifier = newSystemIdentifier();
  for (const folder of ['', ...folders]) {
    mkdirSync(path.join(cluster, folder), { recursive: true, mode: 0o700 });
  }
  let at = endOfIndex + 1;
  for (const [name, bytes] of files) {
    const data = content.subarray(at, at + bytes);
    at += bytes;
    if (name === CONTROL_FILE) identifyControlFile(data, systemIdentifier);
    if (LOG_SEGMENT.test(name)) systemIdentifier.copy(data, LOG_SYSTEM_IDENTIFIER);
    const isLast = name === LAST_FILE;
    const file = path.join(cluster, isLast ? `${name}.new` : name);
    writeFileSync(file, data, { mode: 0o600 });
    // Rename the last file: a crash must not leave it empty.
    if (isLast) renameSync(file, path.join(cluster, name));
  }
  return true;
}

/**
 * Returns the seconds since 1970 followed by 32 random bits. BootStrapXLOG (xlog.c) uses
 * microseconds and the process id instead, which can be equal in two containers.
 */
function newSystemIdentifier(): Buffer {
  const identifier = Buffer.alloc(8);
  randomFillSync(identifier, 0, 4);
  identifier.writeUInt32LE(Math.floor(Date.now() / 1_000), 4);
  return identifier;
}

function identifyControlFile(control: Buffer, systemIdentifier: Buffer): void {
  systemIdentifier.copy(control, CONTROL.systemIdentifier);
  randomFillSync(control, CONTROL.nonce, CONTROL.nonceEnd - CONTROL.nonce);
  control.writeUInt32LE(crc32c(control.subarray(0, CONTROL.checksum)), CONTROL.checksum);
}

/** CRC-32C (Castagnoli), as PostgreSQL computes it (port/pg_crc32c.h). zlib has only CRC-32. */
function crc32c(data: Buffer): number {
  let crc = 0xffffffff;
  for (const byte of data) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit += 1) crc = (crc >>> 1) ^ (crc & 1 ? 0x82f63b78 : 0);
  }
  return ~crc >>> 0;
}

function pgliteVersion(): string {
  const manifest = new URL('../package.json', import.meta.resolve('@electric-sql/pglite'));
  return (JSON.parse(readFileSync(manifest, 'utf8')) as { version: string }).version;
}
