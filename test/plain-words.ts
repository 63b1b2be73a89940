/** `npm run check` refuses comments of `src` with words for which this field has plainer ones. */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

const SOURCES = path.join(import.meta.dirname, '../src');

/** Each word, and what to write instead. */
const WORDS: readonly (readonly [word: RegExp, instead: string])[] = [
  [/\b(whoever|nobody|somebody|anybody|everybody)\b/i, 'user, client, caller, attacker, operator'],
  [/\balongside\b/i, 'in the transaction'],
  [/\bbeside\b/i, 'in the background, next to'],
  [/\banew\b/i, 'again'],
  [/\b(told|tells) of\b/i, 'receives, is notified of, announces'],
  [/\bnoted\b/i, 'recorded, queued'],
  [/\bheld back\b/i, 'blocked, buffered'],
  [/\bnot good\b/i, 'inactive, invalid'],
  [/\bhow manieth\b/i, 'number'],
  [/\b(Null|Undefined|True|False) of\b/, 'null for, undefined if'],
  [/(\*|\/\/) As of\b/, 'see, like'],
  [/\bunless told\b/i, 'by default'],
  [/\bmade by hand\b/i, 'created by hand'],
];

const COMMENT = /^\s*(\/\*|\*|\/\/)|\s\/\/\s/;

for (const name of readdirSync(SOURCES, { recursive: true, encoding: 'utf8' })) {
  if (!name.endsWith('.ts')) continue;
  const lines = readFileSync(path.join(SOURCES, name), 'utf8').split('\n');
  for (const [index, line] of lines.entries()) {
    if (!COMMENT.test(line)) continue;
    for (const [word, instead] of WORDS) {
      const [found] = word.exec(line) ?? [];
      if (found === undefined) continue;
      console.error(`src/${name}:${index + 1} says "${found.trim()}". Plainer: ${instead}`);
      process.exitCode = 1;
    }
  }
}
