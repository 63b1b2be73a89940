/** Reads the brand's logo files, and checks these and the brand's colour. */
import { readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { lowestContrast, MIN_CONTRAST, nearestReadable } from './colour.ts';
import { type ConfigurationProblem, unreadableFile } from './problems.ts';
import type { SettingsFile } from './schema/schema.ts';
import { checkSvg, type Size } from './svg.ts';

export interface Logo extends Size {
  readonly type: 'png' | 'svg';
  /** Text, so that the settings before and after a reload can be compared. */
  readonly base64: string;
}

export type Logos = { readonly [Name in 'logo' | 'logoDark']?: Logo };

const MAX_BYTES = 32 * 1_024;
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
    const remedy =
      'name a PNG file, or an SVG file exported as plain shapes, of at most ' +
      `${MAX_BYTES / 1_024} kB (docs/operations/brand.md)`;
    problems.push({ path: `brand.${setting}`, value, message: found, remedy });
    return undefined;
  };
  const [logo, logoDark] = [read('logo'), read('logo_dark')];
  const { colour: value = '#000000' } = brand;
  const lowest = lowestContrast(value, 'light');
  if (lowest < MIN_CONTRAST) {
    // Round down: 4.499 must not be shown as 4.50.
    const shown = (Math.floor(lowest * 100) / 100).toFixed(2);
    const message = `is hard to read on light pages: its contrast is ${shown}, less than ${MIN_CONTRAST} (WCAG AA)`;
    const remedy = `write \`"${nearestReadable(value, 'light')}"\`, the nearest shade that passes`;
    problems.push({ path: 'brand.colour', value, message, remedy });
  }
  return { logos: { ...(logo && { logo }), ...(logoDark && { logoDark }) }, problems };
}

/** Returns the logo, or why it is refused, as the rest of a sentence. */
function readLogo(file: string): Logo | string {
  try {
    // Check this first: a device such as /dev/zero has no end.
    const stats = statSync(file);
    if (!stats.isFile()) return 'does not name a file';
    if (stats.size > MAX_BYTES) return `names a file of ${Math.ceil(stats.size / 1_024)} kB`;
    const bytes = readFileSync(file);
    const base64 = bytes.toString('base64');
    if (bytes.length > 33 && bytes.indexOf(PNG) === 0) {
      const [width, height] = [bytes.readUInt32BE(16), bytes.readUInt32BE(20)];
      if (Math.min(width, height) > 0 && Math.max(width, height) <= MAX_SIDE)
        return { type: 'png', base64, width, height };
      return `names a PNG image of ${width} by ${height} pixels, not 1 to ${MAX_SIDE}`;
    }
    const text = bytes.toString().trimStart();
    if (!text.startsWith('<')) return 'names a file that is neither a PNG nor an SVG image';
    const checked = checkSvg(text);
    if (typeof checked !== 'string') return { type: 'svg', base64, ...checked };
    return `names an SVG image that is refused, because it has ${checked}`;
  } catch (error) {
    return unreadableFile(error).message;
  }
}
