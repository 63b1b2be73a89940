/** How long tests wait for a store or an answer: a slow machine makes them slower, not red. */

/** The factor for the production timeouts; only tests of the timeouts themselves use 1 instead. */
export const TIMEOUT_FACTOR = 20;
