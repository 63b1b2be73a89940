/** Approve and Deny in parallel, a few times. */
import { defineDecisions } from './decisions.ts';

defineDecisions(3);
