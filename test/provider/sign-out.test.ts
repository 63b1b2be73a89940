/** Ends sessions while their requests are in flight, five times. */
import { defineSignOuts } from './sign-out.ts';

defineSignOuts(5);
