/** Each race of requests a few times: enough to notice a rule that is missing altogether. */
import { defineRaces } from './races.ts';

defineRaces({ each: 5, revocations: 10 });
