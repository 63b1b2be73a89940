/** Walks with tokens in Redis. For the other deployments see `random-walk.slow.ts`. */
import { repeated } from '../support/repetitions.ts';
import { describeRandomWalks } from './random-walk.ts';

describeRandomWalks({ 'postgres+redis': { walks: repeated(1), steps: 150 } });
