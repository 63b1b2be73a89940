/** Sessions with requests in flight, repeated often enough to hit a gap of a few microseconds. */
import { defineSignOuts } from './sign-out.ts';

defineSignOuts(50);
