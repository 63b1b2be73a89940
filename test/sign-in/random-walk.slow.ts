/** Long walks on each deployment. */
import { repeated } from '../support/repetitions.ts';
import { describeWalks } from './random-walk.ts';

describeWalks({
  embedded: { walks: repeated(1), steps: 40 },
  postgres: { walks: repeated(1), steps: 100 },
  'postgres+redis': { walks: repeated(1), steps: 100 },
});
