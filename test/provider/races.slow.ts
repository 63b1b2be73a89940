/** Each race whose order matters, repeated often enough to hit a gap of a few microseconds. */
import { repeated } from '../support/repetitions.ts';
import { defineRaces } from './races.ts';

defineRaces({ each: repeated(6), equals: 0, revocations: repeated(50) });
