/** Approve and Deny at once, a few times. */
import { defineDecisions } from './decisions.ts';

defineDecisions(5);
