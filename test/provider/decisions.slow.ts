/** Approve and Deny at once, so often that they meet in every way. */
import { defineDecisions } from './decisions.ts';

defineDecisions(200);
