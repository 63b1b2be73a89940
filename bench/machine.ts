/** Describes the machine and the load under which a table was measured. */
import { cpus, loadavg } from 'node:os';

/** Call this first. @returns a function that returns the lines to print with the results. */
export function observeMachine(): () => string {
  const atStart = loadavg();
  const startedAt = new Date();
  return () => {
    const [{ model } = { model: 'unknown' }] = cpus();
    const load = (values: readonly number[]) => values.map((value) => value.toFixed(2)).join(', ');
    return `npm run ${process.env.npm_lifecycle_event ?? 'bench'} -- ${process.argv.slice(2).join(' ')}
${startedAt.toISOString()} to ${new Date().toISOString()}, ${cpus().length} cores, ${model}, Node ${process.version}
Load average at the start ${load(atStart)}, at the end ${load(loadavg())}`;
  };
}
