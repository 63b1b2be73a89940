/**
 * Changes the program in the small ways of Stryker, one at a time, and counts which changes the tests notice. The
 * instrumenter of Stryker puts every mutant of a folder into one copy of the repository; for each mutant, only the
 * test files that reach it run.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { globSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const ROOT = path.join(import.meta.dirname, '../..');
const INSTRUMENTER = '@stryker-mutator/instrumenter@9.6.1';
/** A run of a mutant that takes longer than all tests without it, times this, and a minute, hangs: it is noticed. */
const PATIENCE = 3;

/** Writes which mutants are reached by the tests of each file, or as a module is loaded, and the files with a failure. */
const RECORDER = `const { Runner } = require('mocha');
const { emit } = Runner.prototype;
const stryker = (globalThis.__stryker__ ??= {});
const red = [];
Runner.prototype.emit = function (event, what, ...rest) {
  if (event === 'suite' && what.file) stryker.currentTestId = what.file;
  if (event === 'fail') red.push(stryker.currentTestId);
  return emit.call(this, event, what, ...rest);
};
process.on('exit', () => require('node:fs').writeFileSync('reached.json',
  JSON.stringify({ red, ...stryker.mutantCoverage })));`;

/** Tries `sample` mutants, by chance, or all. @returns the score, with one line for each survivor */
export async function proveMutants(folder: string, tests: readonly string[], seed: string, sample?: number) {
  const copy = temporaryDirectory('mutants');
  // What is committed or staged.
  execFileSync('git', ['checkout-index', '--all', `--prefix=${copy}/`], { cwd: ROOT });
  symlinkSync(path.join(ROOT, 'node_modules'), path.join(copy, 'node_modules'));
  const files = tests.flatMap((pattern) => globSync(pattern, { cwd: copy })).map((name) => path.join(copy, name));
  if (files.length === 0) throw new Error(`No committed or staged test file matches ${tests.join(' ')}.`);
  const mutants = await instrument(copy, folder);
  if (mutants.length === 0) throw new Error(`${folder} has no TypeScript that can be changed.`);
  const chance = ({ key }: Mutant): string => createHash('sha256').update(`${seed} ${key}`).digest('hex');
  const chosen = mutants.toSorted((one, other) => chance(one).localeCompare(chance(other))).slice(0, sample);

  const start = performance.now();
  passes(copy, ['--require', './recorder.cjs', ...files]);
  const limitMs = 60_000 + PATIENCE * (performance.now() - start);
  const { red, static: loaded, perTest } = JSON.parse(readFileSync(path.join(copy, 'reached.json'), 'utf8'));
  // Some tests read or compile the sources, which look different here. Tests that reach least are the fastest.
  const usable = files.filter((file) => !red.includes(file));
  const reached = (file: string): number => Object.keys(perTest[file] ?? {}).length;
  usable.sort((one, other) => reached(one) - reached(other));

  const outcomes = { noticed: 0, survived: 0, unreached: 0 };
  const lines: string[] = [];
  for (const { id, key, line } of chosen) {
    const reaching = usable.filter((file) => id in loaded || id in (perTest[file] ?? {}));
    const survives = () => passes(copy, ['--bail', ...reaching], { __STRYKER_ACTIVE_MUTANT__: id }, limitMs);
    const outcome = reaching.length === 0 ? 'unreached' : survives() ? 'survived' : 'noticed';
    outcomes[outcome] += 1;
    console.error(`${Object.values(outcomes).join(' + ')} of ${chosen.length}: ${outcome}: line ${line}: ${key}`);
    if (outcome !== 'noticed') lines.push(`${outcome}: line ${line}: ${key}`);
  }
  const score = ((100 * outcomes.noticed) / chosen.length).toFixed(1);
  return [
    `${folder}: ${mutants.length} mutants, ${chosen.length} of them tried (seed ${seed}) with ${usable.length} test files`,
    `${JSON.stringify(outcomes)}: ${score} %`,
    ...red.map((file: string) => `left out, because it fails without a mutant: ${path.relative(copy, file)}`),
    ...lines.sort(),
  ].join('\n');
}

interface Mutant {
  readonly id: string;
  readonly line: number;
  /** What is changed, without its place, so that a change of another line leaves the sample as it was. */
  readonly key: string;
}

type StrykerMutant = Readonly<Record<'id' | 'fileName' | 'mutatorName' | 'replacement', string>> & {
  readonly location: { readonly start: { readonly line: number; readonly column: number } };
};

/** Replaces the files of the folder by ones with a switch at each mutant. */
async function instrument(copy: string, folder: string): Promise<readonly Mutant[]> {
  const tools = path.join(copy, 'tools');
  execFileSync('npm', ['install', '--no-audit', '--no-fund', '--ignore-scripts', '--prefix', tools, INSTRUMENTER]);
  const { Instrumenter } = await import(
    path.join(tools, 'node_modules/@stryker-mutator/instrumenter/dist/src/index.js')
  );
  const silent = { debug() {}, info() {}, isDebugEnabled: () => false, warn() {} };
  const names = globSync(`${folder}/**/*.ts`, { cwd: copy });
  const read = (name: string) => ({ name, content: readFileSync(path.join(copy, name), 'utf8'), mutate: true });
  const options = { excludedMutations: [], ignorers: [], plugins: null };
  const { files, mutants } = await new Instrumenter(silent).instrument(names.map(read), options);
  const counts = new Map<string, number>();
  const found = mutants.map(({ id, fileName, mutatorName, replacement, location: { start } }: StrykerMutant) => {
    const text = read(fileName).content.split('\n')[start.line]?.slice(start.column);
    const key = `${text} ${fileName} ${mutatorName}: ${replacement.replaceAll(/\s+/g, ' ')}`;
    const count = (counts.get(key) ?? 0) + 1;
    counts.set(key, count);
    return { id, line: start.line + 1, key: count === 1 ? key : `${key} (${count})` };
  });
  for (const { name, content } of files) writeFileSync(path.join(copy, name), content);
  writeFileSync(path.join(copy, 'recorder.cjs'), RECORDER);
  return found;
}

/** Runs mocha with these arguments. @returns false also if it takes longer */
function passes(cwd: string, args: readonly string[], environment: Readonly<Record<string, string>> = {}, limitMs = 0) {
  // `timeout` ends its servers and the programs that the tests have started as well; 0 is no limit.
  const limit = ['--signal=KILL', `${Math.ceil(limitMs / 1000)}`];
  const env = { ...process.env, ...environment };
  const mocha = [process.execPath, 'node_modules/mocha/bin/mocha.js', ...args];
  const { status, error } = spawnSync('timeout', [...limit, ...mocha], { cwd, env, stdio: 'ignore' });
  if (error) throw new Error(`No test can run: ${error.message}.`);
  return status === 0;
}
