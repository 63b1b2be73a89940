/** Closes what a test process opened: after the file that opened it, or after all tests. */

type Ending = () => Promise<void> | void;

const endingsOfFile: Ending[] = [];
const endingsOfRun: Ending[] = [];

/** Runs `ending` after the file whose test or hook calls this, the latest opened first. */
export function atEndOfFile(ending: Ending): void {
  endingsOfFile.unshift(ending);
}

/**
 * Runs `ending` after the last test, to close what several test files share. A worker process of a
 * parallel run may exit before that, so nothing may outlive the process if `ending` is not called.
 */
export function atEndOfRun(ending: Ending): void {
  endingsOfRun.unshift(ending);
}

export const endFile = (): Promise<void> => runAll(endingsOfFile);

export async function endRun(): Promise<void> {
  await runAll(endingsOfFile);
  await runAll(endingsOfRun);
}

/** Runs every ending, even if another one fails. */
async function runAll(endings: Ending[]): Promise<void> {
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
