/**
 * Changes the program in the small ways of Stryker, one at a time, and counts which changes the tests notice. The
 * instrumenter of Stryker puts every mutant of a folder into one copy of the repository; for each mutant, only the
 * test files that reach it run, the fastest first.
 */
import { execFile, execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, globSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const ROOT = path.join(import.meta.dirname, '../..');
const INSTRUMENTER = '@stryker-mutator/instrumenter@9.6.1';
/** A run of a mutant that takes longer than the tests without it, times this, and a minute, hangs: it is noticed. */
const PATIENCE = 3;
/** So many test files run before the others that reach a mutant. */
const FIRST = 3;

/** Writes the mutants that a test file has reached, when its process exits. */
const RECORDER = `process.on('exit', () => require('node:fs').writeFileSync(process.env.REACHED_FILE,
  JSON.stringify(Object.keys(globalThis.__stryker__?.mutantCoverage?.static ?? {}))));`;

interface Mutant {
  readonly id: string;
  readonly fileName: string;
  readonly mutatorName: string;
  readonly replacement: string;
  readonly location: { readonly start: { readonly line: number; readonly column: number } };
}

export interface MutantOptions {
  /** The folder whose files are changed. */
  readonly folder: string;
  /** Patterns of the test files. */
  readonly tests: readonly string[];
  /** How many mutants, by chance; undefined for all. */
  readonly sample: number | undefined;
  readonly seed: string;
  readonly jobs: number;
}

/** @returns the score, with one line for each survivor */
export async function proveMutants(options: MutantOptions): Promise<string> {
  const { folder, sample, seed } = options;
  const copy = temporaryDirectory('mutants');
  for (const name of execFileSync('git', ['ls-files'], { cwd: ROOT, encoding: 'utf8' }).trim().split('\n')) {
    cpSync(path.join(ROOT, name), path.join(copy, name));
  }
  symlinkSync(path.join(ROOT, 'node_modules'), path.join(copy, 'node_modules'));
  const mutants = await instrument(copy, folder);
  const chance = ({ id }: Mutant): string => createHash('sha256').update(`${seed} ${id}`).digest('hex');
  const shuffled = mutants.toSorted((one, other) => chance(one).localeCompare(chance(other)));
  const chosen = shuffled.slice(0, sample);

  const files = options.tests.flatMap((pattern) => globSync(pattern, { cwd: copy })).sort();
  const reachedBy = new Map<string, { readonly file: string; readonly ms: number }[]>();
  const unusable: string[] = [];
  await eachOf(files, options.jobs, async (file) => {
    const start = performance.now();
    const reached = path.join(copy, `${file.replaceAll('/', '-')}.reached`);
    // Some tests read or compile the sources, which look different here.
    if (!(await passes(copy, [file], { REACHED_FILE: reached }))) return void unusable.push(file);
    const ms = performance.now() - start;
    for (const id of JSON.parse(readFileSync(reached, 'utf8'))) {
      reachedBy.set(id, [...(reachedBy.get(id) ?? []), { file, ms }]);
    }
  });

  const survivors: Mutant[] = [];
  const unreached: Mutant[] = [];
  let done = 0;
  await eachOf(chosen, options.jobs, async (mutant) => {
    const reaching = reachedBy.get(mutant.id)?.toSorted((one, other) => one.ms - other.ms) ?? [];
    if (reaching.length === 0) return void unreached.push(mutant);
    // Most are noticed by the first files, and a survivor is what no file notices.
    const parts = [reaching.slice(0, FIRST), reaching.slice(FIRST)];
    const environment = { __STRYKER_ACTIVE_MUTANT__: mutant.id };
    let isNoticed = false;
    for (const part of parts.filter(({ length }) => length > 0)) {
      const limitMs = PATIENCE * part.reduce((sum, { ms }) => sum + ms, 0) + 60_000;
      const names = part.map(({ file }) => file);
      isNoticed ||= !(await passes(copy, names, environment, limitMs));
    }
    if (!isNoticed) survivors.push(mutant);
    done += 1;
    console.error(`${done} of ${chosen.length}: ${survivors.length} survived`);
  });
  const killed = chosen.length - survivors.length - unreached.length;
  const lineOf = ({ fileName, location, mutatorName, replacement }: Mutant): string =>
    `${path.relative(copy, fileName)}:${location.start.line + 1} ${mutatorName}: ${replacement.replaceAll(/\s+/g, ' ')}`;
  return [
    `${folder}: ${mutants.length} mutants, ${chosen.length} of them tried (seed ${seed})`,
    `${killed} noticed, ${survivors.length} not, ${unreached.length} not reached by ${files.length} test files: ${((100 * killed) / chosen.length).toFixed(1)} %`,
    ...unusable.map((file) => `left out, because it fails without a mutant: ${file}`),
    ...survivors.map((mutant) => `survived: ${lineOf(mutant)}`).sort(),
    ...unreached.map((mutant) => `not reached: ${lineOf(mutant)}`).sort(),
  ].join('\n');
}

/** Replaces the files of the folder by ones with a switch at each mutant. */
async function instrument(copy: string, folder: string): Promise<readonly Mutant[]> {
  const tools = path.join(copy, 'tools');
  mkdirSync(tools);
  writeFileSync(path.join(tools, 'package.json'), '{ "private": true }');
  await promisify(execFile)('npm', ['install', '--no-audit', '--no-fund', '--ignore-scripts', INSTRUMENTER], {
    cwd: tools,
  });
  const entry = path.join(tools, 'node_modules/@stryker-mutator/instrumenter/dist/src/index.js');
  const { Instrumenter } = await import(entry);
  const silent = { debug() {}, info() {}, isDebugEnabled: () => false, warn() {} };
  const sources = globSync(`${folder}/**/*.ts`, { cwd: copy }).map((name) => {
    const file = path.join(copy, name);
    return { name: file, content: readFileSync(file, 'utf8'), mutate: true };
  });
  const options = { excludedMutations: [], ignorers: [], plugins: null };
  const { files, mutants } = await new Instrumenter(silent).instrument(sources, options);
  for (const { name, content } of files) writeFileSync(name, content);
  writeFileSync(path.join(copy, 'recorder.cjs'), RECORDER);
  return mutants;
}

/** Runs these test files in one process until the first failure. @returns false also if it takes longer */
function passes(
  copy: string,
  files: readonly string[],
  environment: Readonly<Record<string, string>>,
  limitMs?: number,
): Promise<boolean> {
  const recorder = environment.REACHED_FILE === undefined ? [] : ['--require', './recorder.cjs'];
  const args = ['node_modules/mocha/bin/mocha.js', '--bail', ...recorder, ...files];
  const env = { ...process.env, ...environment };
  const child = spawn(process.execPath, args, { cwd: copy, env, stdio: 'ignore', detached: true });
  // With its servers and the programs that the tests have started.
  const kill = (): void => void (child.pid && process.kill(-child.pid, 'SIGKILL'));
  const timer = limitMs === undefined ? undefined : setTimeout(kill, limitMs);
  return new Promise((resolve) =>
    child.on('exit', (code) => {
      clearTimeout(timer);
      resolve(code === 0);
    }),
  );
}

/** Runs `work` for every item, so many at a time. */
async function eachOf<Item>(items: readonly Item[], jobs: number, work: (item: Item) => Promise<void>): Promise<void> {
  const left = items.values();
  const run = async (): Promise<void> => {
    for (const item of left) await work(item);
  };
  await Promise.all(Array.from({ length: jobs }, run));
}
