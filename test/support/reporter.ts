/** Mocha's report, after it one plain line that a script can find, and then the end. */
import Mocha from 'mocha';

class ClosingLineReporter extends Mocha.reporters.Spec {
  override epilogue(): void {
    super.epilogue();
    const { passes, failures, pending } = this.stats;
    const skipped = pending > 0 ? `, ${pending} skipped` : '';
    console.log(`${passes} passed, ${failures} failed${skipped}`);
    setTimeout(failUnended, LONGEST_END).unref();
  }
}

/** Milliseconds. */
const LONGEST_END = 15_000;

/** A test that leaves something open would keep the run from ending; it is told instead. */
function failUnended(): void {
  console.error(`still open after the last test: ${process.getActiveResourcesInfo().join(', ')}`);
  process.exit(1);
}

// Mocha takes the module itself for the reporter.
export { ClosingLineReporter as 'module.exports' };
