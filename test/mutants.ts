/**
 * `npm run mutants [-- --only N … | --from N] [--without-proof]`: breaks one rule at a time in a
 * copy of the repository, and reports whether a test fails. With `--without-proof` it does not
 * first check that the tests pass with the unchanged code.
 */
import { spawn } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { MUTANTS, type Mutant } from './mutant-list.ts';

const ROOT = path.join(import.meta.dirname, '..');
const NOT_COPIED = new Set(['.git', 'node_modules', 'data', 'dist']);
const MOCHA = 'node_modules/mocha/bin/mocha.js';
/** The time limit for the tests of one mutant. The first run, without a mutant, may take longer. */
const LIMIT_MS = 300_000;
const AT_ONCE = 2;

/** `red` means that a test failed. `did not run` and `hung` prove nothing about the tests. */
type Verdict = 'red' | 'survived' | 'did not run' | 'hung';

const { values } = parseArgs({
  options: {
    only: { type: 'string', multiple: true },
    from: { type: 'string', default: '1' },
    'without-proof': { type: 'boolean', default: false },
  },
});

const numbered = MUTANTS.map((mutant, place) => ({ ...mutant, number: place + 1 }));
const chosen = numbered.filter(({ number }) =>
  values.only ? values.only.includes(String(number)) : number >= Number(values.from),
);
const scratch = mkdtempSync(path.join(tmpdir(), 'mutants-'));
/** The process groups of the test runs, each with the processes that the run has started. */
const running = new Set<number>();
process.on('exit', () => {
  rmSync(scratch, { recursive: true, force: true });
  for (const group of running) process.kill(-group);
});
process.on('SIGINT', () => process.exit(130));

const copies = Array.from({ length: Math.min(AT_ONCE, chosen.length) }, (_, place) =>
  copyTo(path.join(scratch, String(place))),
);
const verdicts: Verdict[] = [];
const [firstCopy] = copies;
if (firstCopy === undefined) throw new TypeError('no such mutant');
if (!values['without-proof']) await requireGreen(firstCopy);
const queue = chosen.values();
await Promise.all(copies.map(runQueued));
const red = verdicts.filter((verdict) => verdict === 'red').length;
console.log(`${red} of ${chosen.length} rules broken on purpose turned a test red`);
process.exitCode = red === chosen.length ? 0 : 1;

function copyTo(copy: string): string {
  cpSync(ROOT, copy, {
    recursive: true,
    filter: (source) => !NOT_COPIED.has(path.relative(ROOT, source)),
  });
  symlinkSync(path.join(ROOT, 'node_modules'), path.join(copy, 'node_modules'));
  return copy;
}

/** Throws if a test fails without a mutant: its failure would prove nothing. */
async function requireGreen(copy: string): Promise<void> {
  const tests = [...new Set(chosen.flatMap((mutant) => mutant.tests))];
  const { verdict, output } = await runTests(copy, tests, LIMIT_MS * 10);
  if (verdict !== 'survived') throw new Error(`${verdict} without a mutant:\n${output}`);
}

async function runQueued(copy: string): Promise<void> {
  for (const mutant of queue) {
    const startedAt = performance.now();
    const { verdict, output } = await withMutant(copy, mutant);
    const seconds = Math.round((performance.now() - startedAt) / 1000);
    const [, noticedBy = ''] = /^\s+1\) (.+)$/m.exec(output) ?? [];
    console.log(
      `${mutant.number} ${verdict} (${seconds} s): ${mutant.rule}; ${mutant.file}; ${noticedBy}`,
    );
    verdicts.push(verdict);
  }
}

async function withMutant(copy: string, { file, from, to, tests }: Mutant) {
  const name = path.join(copy, file);
  const text = readFileSync(name, 'utf8');
  if (text.split(from).length !== 2) throw new Error(`not exactly once in ${file}: ${from}`);
  writeFileSync(
    name,
    text.replace(from, () => to),
  );
  try {
    return await runTests(copy, tests, LIMIT_MS);
  } finally {
    writeFileSync(name, text);
  }
}

function runTests(copy: string, tests: readonly string[], limit: number) {
  const child = spawn(process.execPath, [MOCHA, '--bail', ...tests], {
    cwd: copy,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const { pid: group } = child;
  if (group === undefined) throw new Error(`${process.execPath} cannot be started`);
  running.add(group);
  let output = '';
  let isHung = false;
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk) => {
      output += chunk;
    });
  }
  const timer = setTimeout(() => {
    isHung = true;
    process.kill(-group);
  }, limit);
  return new Promise<{ verdict: Verdict; output: string }>((resolve) => {
    child.on('close', (code) => {
      clearTimeout(timer);
      running.delete(group);
      resolve({ verdict: isHung ? 'hung' : verdictOf(code, output), output });
    });
  });
}

function verdictOf(code: number | null, output: string): Verdict {
  if (code === 0) return 'survived';
  return /\b[1-9]\d* failed/.test(output) ? 'red' : 'did not run';
}
