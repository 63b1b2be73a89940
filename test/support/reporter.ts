/** Mocha's report, then the slowest files, the failed ones, and a line that scripts can find. */
import path from 'node:path';
import Mocha from 'mocha';

const { EVENT_TEST_END, EVENT_TEST_FAIL, EVENT_HOOK_END } = Mocha.Runner.constants;

class ClosingLineReporter extends Mocha.reporters.Spec {
  readonly #milliseconds = new Map<string, number>();
  readonly #failing = new Set<string>();

  constructor(runner: Mocha.Runner, options?: Mocha.MochaOptions) {
    super(runner, options);
    const spent = (work: Mocha.Runnable): void => {
      const { file = 'outside the files', duration = 0 } = work;
      this.#milliseconds.set(file, (this.#milliseconds.get(file) ?? 0) + duration);
    };
    runner.on(EVENT_TEST_END, spent);
    runner.on(EVENT_HOOK_END, spent);
    runner.on(EVENT_TEST_FAIL, ({ file, title }: Mocha.Runnable) => {
      this.#failing.add(file ?? title);
    });
  }

  override epilogue(): void {
    super.epilogue();
    if (this.#milliseconds.size > 1) this.#list('seconds of the slowest files:', this.#slowest());
    this.#list('files that failed:', [...this.#failing].map(shown));
    const { passes, failures, pending } = this.stats;
    const skipped = pending > 0 ? `, ${pending} skipped` : '';
    console.log(`${passes} passed, ${failures} failed${skipped}`);
    setTimeout(failUnended, END_TIMEOUT_MS).unref();
  }

  #slowest(): string[] {
    return [...this.#milliseconds]
      .sort(([, one], [, other]) => other - one)
      .slice(0, 10)
      .map(([file, ms]) => `${(ms / 1000).toFixed(1).padStart(6)}  ${shown(file)}`);
  }

  #list(title: string, lines: readonly string[]): void {
    if (lines.length > 0) console.log([title, ...lines.map((line) => `  ${line}`), ''].join('\n'));
  }
}

const shown = (file: string): string => path.relative(process.cwd(), file);

const END_TIMEOUT_MS = 60_000;

/** Ends a run that something left open would keep from ending, and reports what that is. */
function failUnended(): void {
  console.error(`still open after the last test: ${process.getActiveResourcesInfo().join(', ')}`);
  process.exit(1);
}

// Export under this name, because Mocha uses the module itself as the reporter.
export { ClosingLineReporter as 'module.exports' };
