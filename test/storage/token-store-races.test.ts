/** Repeats each race a few times: enough to notice a step that is not atomic at all. */
import { defineCleaningRace, defineTokenStoreRaces } from './token-store-races.ts';

defineTokenStoreRaces(5);
defineCleaningRace();
