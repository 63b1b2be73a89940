/** Repeats each race often enough to hit a gap of a few microseconds. */
import { defineTokenStoreRaces } from './token-store-races.ts';

defineTokenStoreRaces(50);
