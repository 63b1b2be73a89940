/** Repeats each race often enough to hit a gap of a few microseconds. */
import { repeated } from '../support/repetitions.ts';
import { defineTokenStoreRaces } from './token-store-races.ts';

defineTokenStoreRaces(repeated(24));
