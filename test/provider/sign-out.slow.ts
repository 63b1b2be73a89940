/** Sessions with requests in flight, repeated often enough to hit a gap of a few microseconds. */
import { repeated } from '../support/repetitions.ts';
import { defineSignOuts } from './sign-out.ts';

defineSignOuts(repeated(12));
