/** Walks on each deployment, with tokens in Redis one more than `random-walk.test.ts`. */
import { describeRandomWalks } from './random-walk.ts';

describeRandomWalks({
  embedded: { walks: 1, steps: 100 },
  postgres: { walks: 2, steps: 150 },
  'postgres+redis': { walks: 1, steps: 150 },
});
