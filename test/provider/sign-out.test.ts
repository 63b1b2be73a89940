/** Ends sessions while their requests are in flight, three times. */
import { defineSignOuts } from './sign-out.ts';

defineSignOuts(3);
