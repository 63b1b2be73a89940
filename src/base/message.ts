/** A text without its language, which pages and mails print in the language of its reader. */

/** Pages put it into view data, errors and cookies. Safe as JSON. */
export interface Message {
  readonly key: string;
  readonly values?: Values;
}

/** A time as in `Moment` of the pages; each language prints it in its own way. */
export interface Instant {
  readonly iso: string;
}

export type Values = Readonly<Record<string, Text | number | Instant>>;

/** A message, or a text that needs no translation: it was written by a person. */
export type Text = string | Message;

/** @param key a literal, or a template whose values are a closed set: a test looks for them. */
export const message = (key: string, values?: Values): Message => ({
  key,
  ...(values && { values }),
});

/** True for a message, false for another result of the same call. */
export const isMessage = (result: object): result is Message => 'key' in result;
