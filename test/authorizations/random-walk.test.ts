/** Walks with tokens in Redis. For the other deployments see `random-walk.slow.ts`. */
import { describeRandomWalks } from './random-walk.ts';

describeRandomWalks({ 'postgres+redis': { walks: 2, steps: 150 } });
