/**
 * Changes the program in the small ways of Stryker, one at a time, and counts which changes the tests notice. The
 * instrumenter of Stryker puts every mutant of a folder into one copy of the repository; for each mutant, only the
 * test files that reach it run, the fastest first.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, globSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const ROOT = path.join(import.meta.dirname, '../..');
const INSTRUMENTER = '@stryker-mutator/instrumenter@9.6.1';
/** A run of a mutant that takes longer than the tests without it, times this, and a minute, hangs: it is noticed. */
const PATIENCE = 3;

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
  readonly folder: string;
  readonly tests: readonly string[];
  /** How many mutants, by chance; undefined for all. */
  readonly sample: number | undefined;
  readonly seed: string;
}

/** @returns the score, with one line for each survivor @throws an error whose message says what cannot be tried */
export async function proveMutants({ folder, tests, sample, seed }: MutantOptions): Promise<string> {
  const copy = temporaryDirectory('mutants');
  // What is committed or staged.
  execFileSync('git', ['checkout-index', '--all', `--prefix=${copy}/`], { cwd: ROOT });
  symlinkSync(path.join(ROOT, 'node_modules'), path.join(copy, 'node_modules'));
  const files = tests.flatMap((pattern) => globSync(pattern, { cwd: copy })).sort();
  if (files.length === 0) throw new Error(`No committed or staged test file matches ${tests.join(' ')}.`);
  const mutants = await instrument(copy, folder);
  if (mutants.length === 0) throw new Error(`${folder} has no TypeScript that can be changed.`);
  const chance = ({ id }: Mutant): string => createHash('sha256').update(`${seed} ${id}`).digest('hex');
  const chosen = mutants.toSorted((one, other) => chance(one).localeCompare(chance(other))).slice(0, sample);

  const reachedBy = new Map<string, { readonly file: string; readonly ms: number }[]>();
  const unusable: string[] = [];
  for (const file of files) {
    const start = performance.now();
    const reached = path.join(copy, `${file.replaceAll('/', '-')}.reached`);
    // Some tests read or compile the sources, which look different here.
    if (!passes(copy, [file], { REACHED_FILE: reached }) || !existsSync(reached)) {
      unusable.push(file);
      continue;
    }
    const ms = performance.now() - start;
    for (const id of JSON.parse(readFileSync(reached, 'utf8'))) {
      reachedBy.set(id, [...(reachedBy.get(id) ?? []), { file, ms }]);
    }
  }

  const survivors: Mutant[] = [];
  const unreached: Mutant[] = [];
  for (const [index, mutant] of chosen.entries()) {
    const reaching = reachedBy.get(mutant.id)?.toSorted((one, other) => one.ms - other.ms) ?? [];
    const limitMs = PATIENCE * reaching.reduce((sum, { ms }) => sum + ms, 0) + 60_000;
    const names = reaching.map(({ file }) => file);
    if (names.length === 0) unreached.push(mutant);
    else if (passes(copy, names, { __STRYKER_ACTIVE_MUTANT__: mutant.id }, limitMs)) survivors.push(mutant);
    console.error(`${index + 1} of ${chosen.length}: ${survivors.length} survived`);
  }
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
  execFileSync('npm', ['install', '--no-audit', '--no-fund', '--ignore-scripts', '--prefix', tools, INSTRUMENTER]);
  const { Instrumenter } = await import(
    path.join(tools, 'node_modules/@stryker-mutator/instrumenter/dist/src/index.js')
  );
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
function passes(cwd: string, files: readonly string[], environment: Readonly<Record<string, string>>, limitMs = 0) {
  const recorder = environment.REACHED_FILE === undefined ? [] : ['--require', './recorder.cjs'];
  const mocha = [process.execPath, 'node_modules/mocha/bin/mocha.js', '--bail', ...recorder, ...files];
  // `timeout` ends its servers and the programs that the tests have started as well; 0 is no limit.
  const args = ['--signal=KILL', `${Math.ceil(limitMs / 1000)}`, ...mocha];
  const { status, error } = spawnSync('timeout', args, {
    cwd,
    env: { ...process.env, ...environment },
    stdio: 'ignore',
  });
  if (error) throw new Error(`No test can run: ${error.message}.`);
  return status === 0;
}
