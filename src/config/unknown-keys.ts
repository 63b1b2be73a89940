/** Unknown keys in the settings file: suggests what was probably meant, and where it belongs. */
import { nearestWord } from '../base/nearest-word.ts';
import type { ConfigurationProblem } from './problems.ts';
import { knownSettings, settingsInList, settingsUnder } from './schema/known-settings.ts';
import { settingsFile } from './schema/schema.ts';

/** Describes an unknown key. @param path its heading; empty for a key at the left margin. */
export function unknownKey(path: readonly string[], key: string): ConfigurationProblem {
  return {
    path: [...path, key].join('.'),
    // Do not show the value: it may be a secret that was put into the file.
    message: 'is not a setting',
    remedy: remedyOf(path, key),
  };
}

function remedyOf(path: readonly string[], key: string): string {
  const [heading] = path;
  if (path.length > 1) return remedyInList(path, key);
  if (/secret|cookie_?key|token_?key/i.test(key)) {
    return 'set secrets in the environment: GATEHOUSE_COOKIE_KEYS and GATEHOUSE_TOKEN_KEYS';
  }
  const [above, below] = knownSettings.get(key)?.path ?? [];
  if (below !== undefined) return `write \`${below}\` indented below a line \`${above}:\``;
  const elsewhere = places.filter((place) => place.heading !== heading);
  const homes = elsewhere.filter((place) => place.key === key);
  if (homes.length > 0) return `\`${key}\` belongs ${homes.map(placeOf).join(' or ')}`;

  const here = places.filter((place) => place.heading === heading).map((place) => place.key);
  const meantHere = nearestWord(key, here);
  if (meantHere !== undefined) return `did you mean \`${meantHere}\`?`;
  const meant = nearestWord(
    key,
    elsewhere.map((place) => place.key),
  );
  const home = elsewhere.find((place) => place.key === meant);
  if (home) return `did you mean \`${home.key}\`, which belongs ${placeOf(home)}?`;
  return `remove it; allowed here: ${here.join(', ')}`;
}

function remedyInList(path: readonly string[], key: string): string {
  if (key === 'client_secret') {
    return 'write it into a separate file, which only this service may read, and name that file in `client_secret_file`';
  }
  const keys = settingsInList(path);
  const meant = nearestWord(key, keys);
  return meant === undefined ? `remove it; allowed here: ${keys.join(', ')}` : `did you mean \`${meant}\`?`;
}

interface Place {
  readonly key: string;
  /** Undefined for a key at the left margin. */
  readonly heading?: string;
}

/** Every key that the file may contain, including the headings. */
const places: readonly Place[] = Object.keys(settingsFile.shape).flatMap((heading) => [
  { key: heading },
  ...Object.keys(settingsUnder(heading)).map((key) => ({ key, heading })),
]);

const placeOf = ({ heading }: Place): string =>
  heading === undefined ? 'at the left margin, under no heading' : `under \`${heading}\``;
