/** Approve and Deny in parallel, often enough that they interleave in every order. */
import { defineDecisions } from './decisions.ts';

defineDecisions(200);
