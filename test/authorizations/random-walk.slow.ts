/** Walks on each deployment. */
import { describeRandomWalks } from './random-walk.ts';

describeRandomWalks({
  embedded: { walks: 1, steps: 100 },
  postgres: { walks: 2, steps: 150 },
  'postgres+redis': { walks: 3, steps: 150 },
});
