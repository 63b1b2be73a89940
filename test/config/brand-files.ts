/** Logo files for tests of the brand. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { crc32, deflateSync } from 'node:zlib';
import { directory } from './configuration.ts';

/** Writes a file next to the settings files of tests. @returns its name */
export function logoFile(name: string, content: string | Buffer): string {
  writeFileSync(path.join(directory, name), content);
  return name;
}

export const SVG = 'xmlns="http://www.w3.org/2000/svg" viewBox="0 0 240 60"';

/** A harmless logo, with most of what drawing programs write. */
export const ACME_SVG = `<?xml version="1.0" encoding="UTF-8"?>
<!-- Acme -->
<svg ${SVG} xmlns:xlink="http://www.w3.org/1999/xlink" xml:space="preserve" width="240" height="60">
  <title>Acme &amp; Co</title>
  <defs><linearGradient id="a"><stop offset="0" stop-color="#0b5cad"/><stop offset="1" stop-color="#2a8"/></linearGradient>
  <linearGradient id="b" xlink:href="#a" gradientTransform="rotate(90)"/></defs>
  <style>.mark { fill: url(#b); }</style>
  <path class="mark" d="M5 55 30 5l25 50z"/>
  <text x="70" y="42" style="font: bold 36px sans-serif" fill="#0b5cad">Acme</text>
</svg>
`;

/** Returns a grey PNG image. */
export function png(width: number, height: number): Buffer {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 0], 8);
  const rows = Buffer.alloc(height * (width + 1), 0x80);
  for (let row = 0; row < height; row += 1) rows[row * (width + 1)] = 0;
  return Buffer.concat([
    Buffer.from('89504e470d0a1a0a', 'hex'),
    chunk('IHDR', header),
    chunk('IDAT', deflateSync(rows)),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type), data]);
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  sum.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, sum]);
}
