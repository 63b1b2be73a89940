/** Each race of requests a few times: enough to notice a rule that is missing altogether. */
import { defineRaces } from './races.ts';

defineRaces({ each: 3, equals: 3, revocations: 6 });
