/** Sessions with requests in flight, a few times. */
import { defineSignOuts } from './sign-out.ts';

defineSignOuts(5);
