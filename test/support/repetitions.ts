/** How often slow tests repeat what only chance shows: races, kills, failovers, restarts, random walks. */

/** `REPEAT=4 npm run test:slow` repeats them four times as often as CI. */
const FACTOR = Number(process.env.REPEAT ?? 1);

/** @param times how often CI repeats it */
export const repeated = (times: number): number => Math.ceil(times * FACTOR);
