/** What a test process must close: after the file that opened it, or when all tests are done. */

type Ending = () => Promise<void> | void;

const endingsOfFile: Ending[] = [];
const endingsOfRun: Ending[] = [];

/** Runs `ending` after the file whose test or hook asks for it, the latest opened first. */
export function atEndOfFile(ending: Ending): void {
  endingsOfFile.unshift(ending);
}

/**
 * Runs `ending` after the last test, for what the files share. In a process that serves a parallel
 * run nothing is told in time: whoever asks must leave nothing behind when the process just exits.
 */
export function atEndOfRun(ending: Ending): void {
  endingsOfRun.unshift(ending);
}

export const endFile = (): Promise<void> => runAll(endingsOfFile);

/** Closes everything now. */
export async function endRun(): Promise<void> {
  await runAll(endingsOfFile);
  await runAll(endingsOfRun);
}

/** One failure keeps none open. */
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
