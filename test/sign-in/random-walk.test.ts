/** A short walk with tokens in Redis. For longer ones, and for the other deployments, see `random-walk.slow.ts`. */
import { describeWalks } from './random-walk.ts';

describeWalks({ 'postgres+redis': { walks: 1, steps: 25 } });
