/** Each race for a record a few times: enough for a step that is not atomic at all. */
import { defineCleaningRace, defineTokenStoreRaces } from './token-store-races.ts';

defineTokenStoreRaces(5);
defineCleaningRace();
