/** How long tests wait for a store or an answer: a slow machine makes them slower, not red. */

/** The factor for the production timeouts; only tests of the timeouts themselves use 1 instead. */
export const TIMEOUT_FACTOR = 20;

/** The factor of a node that a test lets wait for a store which does not answer. */
export const SHORT_TIMEOUT_FACTOR = 2;

/**
 * How long a test waits for an event, in milliseconds: on a quiet machine a twentieth of this time
 * is enough for each. Tests of timeouts use limits of their own.
 */
export const PATIENCE_MS = 60_000;

/** How long a test waits for the installation of packages, which fails earlier without a registry. */
export const INSTALLATION_MS = 4 * PATIENCE_MS;
