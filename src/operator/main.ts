/** `npm run operator -- …`: what an operator does beside the settings file, one command at a time. */
import { environmentOfProcess } from '../config/environment.ts';
import { runOperator } from './program/run-operator.ts';

const { stdin, stdout, stderr } = process;

// `| head` reads no more: what was begun is done all the same, and nobody is told.
for (const stream of [stdout, stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
  });
}

// Only set: the process ends by itself, so that all output is written.
process.exitCode = await runOperator(process.argv.slice(2), {
  environment: environmentOfProcess,
  stdin,
  stdout,
  stderr,
  // The second signal ends the command at once, as ever.
  onInterrupt: (interrupt) => process.once('SIGINT', interrupt).once('SIGTERM', interrupt),
});
