/** How long a test waits for a store or an answer: a machine that is slow or busy makes it slower, never red. */

/** Times the limits of production, which only the tests about these limits keep. */
export const PATIENCE = 20;
