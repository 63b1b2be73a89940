/** What counts for a database that was restored from before some of its history. */

/**
 * Added to a generation it is beyond every one that the lost part of the history may have given out:
 * nobody ends anything so often.
 */
export const BEYOND_LOST = 1_000_000;
