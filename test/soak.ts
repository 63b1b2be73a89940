/** `npm run soak -- --minutes 60 [--deployment …] [--seed N]`: random walks for the given time. */
import { parseArgs } from 'node:util';
import { createProgress } from '../src/operator/program/progress.ts';
import { walk } from './authorizations/random-walk.ts';
import { endRun } from './support/end-of-run.ts';
import type { Deployment } from './support/service.ts';

const DEPLOYMENTS: readonly Deployment[] = ['embedded', 'postgres', 'postgres+redis'];
const WALKS = 20;
const STEPS = 200;

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '10' },
    deployment: { type: 'string', multiple: true, default: [...DEPLOYMENTS] },
    seed: { type: 'string' },
  },
});

const chosen = DEPLOYMENTS.filter((deployment) => values.deployment.includes(deployment));
const progress = createProgress(process.stderr);
const share = (Number(values.minutes) * 60_000) / chosen.length;
if (!(share > 0 && share < Infinity)) throw new TypeError('say for how many minutes, and on which deployments');

try {
  for (const deployment of chosen) {
    const startedAt = performance.now();
    const deadline = startedAt + share;
    let seed = Number(values.seed ?? Math.floor(Math.random() * 2 ** 31));
    let walks = 0;
    while (performance.now() < deadline) {
      // A failing walk throws an error with the seed and the shortest failing walk.
      await walk(deployment, { walks: WALKS, steps: STEPS, seed });
      walks += WALKS;
      // Compare with the number of walks expected at this speed.
      const expected = Math.round((walks * share) / (performance.now() - startedAt));
      progress.show(`${deployment}: walks`, walks, Math.max(walks, expected));
      seed += 1;
    }
    progress.clear();
    console.log(`${deployment}: ${walks} walks of up to ${STEPS} steps, last seed ${seed - 1}`);
  }
} finally {
  progress.clear();
  await endRun();
}
