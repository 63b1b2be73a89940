/** `npm run operator -- …`: runs one command for what the settings file does not decide. */
import { environmentOfProcess } from '../config/environment.ts';
import { runOperator } from './program/run-operator.ts';

const { stdin, stdout, stderr } = process;

// `| head` closes the pipe early: finish the command all the same, without an error message.
for (const stream of [stdout, stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
  });
}

// Set the code only: if the process ends by itself, all output is written.
process.exitCode = await runOperator(process.argv.slice(2), {
  environment: environmentOfProcess,
  stdin,
  stdout,
  stderr,
  // Listen once: the second signal ends the command at once, as usual.
  onInterrupt: (interrupt) => process.once('SIGINT', interrupt).once('SIGTERM', interrupt),
});
