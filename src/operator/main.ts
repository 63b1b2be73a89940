/** `npm run operator -- …`: runs one command to administer what is not in the settings file. */
import { environmentOfProcess } from '../config/environment.ts';
import { runOperator } from './program/run-operator.ts';

const { stdin, stdout, stderr } = process;

// Ignore a closed pipe, as after `| head`: finish the command, without an error message.
for (const stream of [stdout, stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
  });
}

// Set only the code and do not exit, so that all output is written.
process.exitCode = await runOperator(process.argv.slice(2), {
  environment: environmentOfProcess,
  stdin,
  stdout,
  stderr,
  // Listen only once, so that a second signal ends the command at once, as usual.
  onInterrupt: (interrupt) => process.once('SIGINT', interrupt).once('SIGTERM', interrupt),
});
