/** Each race of requests, repeated often enough to hit a gap of a few microseconds. */
import { repeated } from '../support/repetitions.ts';
import { defineRaces } from './races.ts';

defineRaces({ each: repeated(10), equals: repeated(5), revocations: repeated(50) });
