/** Approve and Deny in parallel, often enough that they interleave in every order. */
import { repeated } from '../support/repetitions.ts';
import { defineDecisions } from './decisions.ts';

defineDecisions(repeated(48));
