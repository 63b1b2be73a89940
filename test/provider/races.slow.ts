/** Each race of requests so often that a gap of a few microseconds is met. */
import { defineRaces } from './races.ts';

defineRaces({ each: 50, revocations: 200 });
