/** Lists of values that hold no space, in few lines. */

/** The words of a text, whatever white space is between them. */
export const wordsOf = (text: string): readonly string[] => text.trim().split(/\s+/);
