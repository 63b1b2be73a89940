/** Each race for a record so often that a gap of a few microseconds is met. */
import { defineTokenStoreRaces } from './token-store-races.ts';

defineTokenStoreRaces(50);
