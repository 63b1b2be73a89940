/** Reads the logo files of the brand, and checks these files and the colour of the brand. */
import { readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { lowestContrast, MIN_CONTRAST, nearestReadable } from './colour.ts';
import { type ConfigurationProblem, unreadableFile } from './problems.ts';
import type { SettingsFile } from './schema/schema.ts';

export interface Logo {
  readonly type: 'png' | 'webp';
  readonly width: number;
  readonly height: number;
  /** The content of the file, as text, so that the settings before and after a reload can be compared. */
  readonly base64: string;
}

export type Logos = { readonly [Name in 'logo' | 'logoDark']?: Logo };

const MAX_BYTES = 100 * 1_024;
const MAX_SIDE = 4_096;
/** The signature of PNG and the header of its first chunk, which has the size (PNG §5.2, §11.2.1). */
const PNG = Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex');

/** @param directory the directory of the settings file */
export function readBrand({ brand }: SettingsFile, directory: string) {
  const problems: ConfigurationProblem[] = [];
  const read = (setting: 'logo' | 'logo_dark'): Logo | undefined => {
    const value = path.resolve(directory, brand[setting] ?? '');
    const found = brand[setting] === undefined ? undefined : readLogo(value);
    if (typeof found !== 'string') return found;
    const remedy = `name a PNG or WebP file of at most ${MAX_BYTES / 1_024} kB (docs/operations/brand.md)`;
    problems.push({ path: `brand.${setting}`, value, message: found, remedy });
    return undefined;
  };
  const [logo, logoDark] = [read('logo'), read('logo_dark')];
  const { colour: value = '#000000' } = brand;
  const lowest = lowestContrast(value, 'light');
  if (lowest < MIN_CONTRAST) {
    // Round down, because 4.499 must not be shown as 4.50.
    const shown = (Math.floor(lowest * 100) / 100).toFixed(2);
    const message = `is hard to read on light pages: its contrast is ${shown}, less than ${MIN_CONTRAST} (WCAG AA)`;
    const remedy = `write \`"${nearestReadable(value, 'light')}"\`, the nearest shade that passes`;
    problems.push({ path: 'brand.colour', value, message, remedy });
  }
  return { logos: { ...(logo && { logo }), ...(logoDark && { logoDark }) }, problems };
}

/** Returns the logo. If it is refused, returns the reason as the end of a sentence. */
function readLogo(file: string): Logo | string {
  try {
    // Check the type of the file before reading it, because a device such as /dev/zero has no end.
    const stats = statSync(file);
    if (!stats.isFile()) return 'does not name a file';
    if (stats.size > MAX_BYTES) return `names a file of ${Math.ceil(stats.size / 1_024)} kB`;
    const bytes = readFileSync(file);
    const found = imageIn(bytes);
    if (!found) return 'names a file that is neither a PNG nor a WebP image';
    const { width, height } = found;
    if (Math.min(width, height) > 0 && Math.max(width, height) <= MAX_SIDE)
      return { ...found, base64: bytes.toString('base64') };
    return `names an image of ${width} by ${height} pixels, not 1 to ${MAX_SIDE}`;
  } catch (error) {
    return unreadableFile(error).message;
  }
}

/** Recognizes the image by its signature, not by the name of the file. */
function imageIn(bytes: Buffer): Omit<Logo, 'base64'> | undefined {
  if (bytes.length > 33 && bytes.indexOf(PNG) === 0)
    return { type: 'png', width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) };
  const isWebp = bytes.length > 33 && /^RIFF.{4}WEBPVP8[ LX]/s.test(bytes.toString('latin1', 0, 16));
  return isWebp ? { type: 'webp', ...webpSize(bytes) } : undefined;
}

/** Reads width and height of a WebP image from its first chunk (RFC 9649 §2.5, §2.6, §2.7). */
function webpSize(bytes: Buffer): Pick<Logo, 'width' | 'height'> {
  const kind = bytes.toString('latin1', 12, 16);
  if (kind === 'VP8X') return { width: bytes.readUIntLE(24, 3) + 1, height: bytes.readUIntLE(27, 3) + 1 };
  if (kind === 'VP8 ') return { width: bytes.readUInt16LE(26) & 0x3fff, height: bytes.readUInt16LE(28) & 0x3fff };
  const bits = bytes.readUInt32LE(21);
  return { width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 };
}
