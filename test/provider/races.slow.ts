/** Each race; one whose order matters is repeated often enough to hit a gap of a few microseconds. */
import { repeated } from '../support/repetitions.ts';
import { defineRaces } from './races.ts';

defineRaces({ each: repeated(6), equals: 3, revocations: repeated(50), decisions: repeated(24) });
