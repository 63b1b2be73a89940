/** A text without a language. Pages and mails print it in the language of the reader. */

/** A message as it is stored in view data, errors and cookies. It can be converted to JSON and back. */
export interface Message {
  readonly key: string;
  readonly values?: Values;
}

/** A time like `Moment` of the pages; each language prints it in its own way. */
export interface Instant {
  readonly iso: string;
}

export type Values = Readonly<Record<string, Text | number | Instant>>;

/** A message, or a text that is not translated, because a user or operator wrote it. */
export type Text = string | Message;

/** @param key a literal, or a template with a closed set of values, so that a test can find every key */
export const message = (key: string, values?: Values): Message => ({
  key,
  ...(values && { values }),
});

/** True for a message; false for the other result that the same call may return. */
export const isMessage = (result: object): result is Message => 'key' in result;
