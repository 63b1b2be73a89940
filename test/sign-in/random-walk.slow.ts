/** Long walks on each deployment. */
import { repeated } from '../support/repetitions.ts';
import { describeWalks } from './random-walk.ts';

describeWalks({
  embedded: { walks: repeated(1), steps: 30 },
  postgres: { walks: repeated(1), steps: 60 },
  'postgres+redis': { walks: repeated(1), steps: 60 },
});
