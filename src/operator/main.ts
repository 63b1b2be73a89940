/** `npm run operator -- …`: what an operator does beside the settings file, one command at a time. */
import { environmentOfProcess } from '../config/environment.ts';
import { runOperator } from './run-operator.ts';

const { stdin, stdout, stderr } = process;

// Only set: the process ends by itself, so that all output is written.
process.exitCode = await runOperator(process.argv.slice(2), {
  ...{ environment: environmentOfProcess, stdin, stdout, stderr },
  // The second signal ends the command at once, as ever.
  onInterrupt: (interrupt) => process.once('SIGINT', interrupt).once('SIGTERM', interrupt),
});
