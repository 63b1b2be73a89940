/** What is written about an OAuth error, with the lifetimes left open that an operator sets. */
import type { Lifetimes } from '../routes.ts';

export interface ErrorText {
  readonly title: string;
  readonly meaning: string;
  readonly causes: readonly {
    readonly cause: string | ((lifetimes: Lifetimes) => string);
    readonly remedy: string;
  }[];
}
