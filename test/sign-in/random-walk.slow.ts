/** Long walks on each deployment. */
import { describeWalks } from './random-walk.ts';

describeWalks({
  embedded: { walks: 1, steps: 60 },
  postgres: { walks: 2, steps: 100 },
  'postgres+redis': { walks: 2, steps: 100 },
});
