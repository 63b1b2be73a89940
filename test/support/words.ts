/** Splits a text at any white space, so that a list of many words takes few lines. */
export const wordsOf = (text: string): readonly string[] => text.trim().split(/\s+/);
