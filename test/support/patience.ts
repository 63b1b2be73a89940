/** How long tests wait for a store or an answer: a slow machine makes them slower, not red. */

/** Factor for the timeouts of production; only the tests about these timeouts do without it. */
export const PATIENCE = 20;
