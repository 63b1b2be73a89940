/** A message names a text by its key. Pages and mails print the text in the language of the reader. */

/** Must survive a conversion to JSON and back, because cookies contain messages. */
export interface Message {
  readonly key: string;
  readonly values?: Values;
}

/** A time, which `Texts` formats for the language. */
export interface Instant {
  readonly iso: string;
}

export type Values = Readonly<Record<string, Text | number | Instant>>;

/** A message, or a string that is not translated, because a user or an operator wrote it. */
export type Text = string | Message;

/** @param key must be a literal, or a template with a closed set of values, because a test searches for all keys */
export const message = (key: string, values?: Values): Message => ({
  key,
  ...(values && { values }),
});

export const isMessage = (result: object): result is Message => 'key' in result;
