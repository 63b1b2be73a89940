/** Lists of values without spaces, written in few lines. */

/** Splits a text at any white space. */
export const wordsOf = (text: string): readonly string[] => text.trim().split(/\s+/);
