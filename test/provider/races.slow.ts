/** Each race of requests, repeated often enough to hit a gap of a few microseconds. */
import { defineRaces } from './races.ts';

defineRaces({ each: 50, revocations: 200 });
