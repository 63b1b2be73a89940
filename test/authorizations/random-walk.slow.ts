/** Walks on the deployments that `random-walk.test.ts` leaves out. */
import { repeated } from '../support/repetitions.ts';
import { describeRandomWalks } from './random-walk.ts';

describeRandomWalks({
  embedded: { walks: repeated(1), steps: 60 },
  postgres: { walks: repeated(1), steps: 150 },
});
