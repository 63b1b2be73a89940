/** What is written about an OAuth error, with the lifetimes left open that an operator sets. */

/** Of the settings in force, in seconds. */
export interface Lifetimes {
  readonly authorizationCodeSeconds: number;
  readonly refreshTokenSeconds: number;
}

export interface ErrorText {
  readonly title: string;
  readonly meaning: string;
  readonly causes: readonly {
    readonly cause: string | ((lifetimes: Lifetimes) => string);
    readonly remedy: string;
  }[];
}
