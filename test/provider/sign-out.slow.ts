/** Sessions and requests in flight, so often that a gap of a few microseconds is met. */
import { defineSignOuts } from './sign-out.ts';

defineSignOuts(50);
