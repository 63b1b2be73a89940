/** What a test process must close when all tests are done, whichever suite opened it first. */

type Ending = () => Promise<void> | void;

const endings: Ending[] = [];

/** Runs `ending` after the last test of the run, the latest opened first. */
export function atEndOfRun(ending: Ending): void {
  endings.unshift(ending);
}

/** Closes everything now: for a program that is not run by mocha. One failure keeps none open. */
export async function endRun(): Promise<void> {
  const failures: unknown[] = [];
  for (const ending of endings.splice(0)) {
    try {
      await ending();
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length > 0) throw new AggregateError(failures, 'not everything could be closed');
}

// Loaded while mocha reads the files, so this is a hook of the root suite.
if (typeof after === 'function') after('close what the run shared', endRun);
