/** Writes lists of values that contain no spaces in few lines. */

/** Splits a text at any white space. */
export const wordsOf = (text: string): readonly string[] => text.trim().split(/\s+/);
