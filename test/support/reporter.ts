/** Mocha's report, and after it one plain line that a script can find. */
import Mocha from 'mocha';

class ClosingLineReporter extends Mocha.reporters.Spec {
  override epilogue(): void {
    super.epilogue();
    const { passes, failures, pending } = this.stats;
    const skipped = pending > 0 ? `, ${pending} skipped` : '';
    console.log(`${passes} passed, ${failures} failed${skipped}`);
  }
}

// Mocha takes the module itself for the reporter.
export { ClosingLineReporter as 'module.exports' };
