/** Short walks on each deployment. For longer ones see `random-walk.slow.ts`. */
import { describeWalks } from './random-walk.ts';

describeWalks({
  embedded: { walks: 1, steps: 10 },
  postgres: { walks: 1, steps: 15 },
  'postgres+redis': { walks: 1, steps: 20 },
});
