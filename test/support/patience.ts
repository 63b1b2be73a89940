/** How long tests wait for a store or an answer: slow or busy machines make them slower, not red. */

/** Factor for the timeouts of production; only the tests about these timeouts do without it. */
export const PATIENCE = 20;
