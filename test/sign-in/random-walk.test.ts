/** Short walks on one deployment. For longer ones on each see `random-walk.slow.ts`. */
import { describeWalks } from './random-walk.ts';

describeWalks({ 'postgres+redis': { walks: 2, steps: 20 } });
