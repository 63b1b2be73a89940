/** Each race of requests a few times: enough for a rule that does not hold at all. */
import { defineRaces } from './races.ts';

defineRaces({ each: 5, revocations: 10 });
