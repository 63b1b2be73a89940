/** `npm run operator -- …`: runs one command to administer what is not in the settings file. */
import { environmentOfProcess } from '../config/environment.ts';
import { runOperator } from './program/run-operator.ts';

const { stdin, stdout, stderr } = process;

// If the reader closes the pipe, as `| head` does, finish the command without an error message.
for (const stream of [stdout, stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
  });
}

// Set the exit code instead of calling `process.exit`, so that all output is still written.
process.exitCode = await runOperator(process.argv.slice(2), {
  environment: environmentOfProcess,
  stdin,
  stdout,
  stderr,
  // Listen only once, so that a second signal ends the process at once.
  onInterrupt: (interrupt) => process.once('SIGINT', interrupt).once('SIGTERM', interrupt),
});
