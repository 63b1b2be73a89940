/** What each view is given: one object called `page` per view, checked where the page builds it. */
import type { Context } from 'koa';
import type { Moment } from './words/moment.ts';

/**
 * The views of `views/`, by file name, and the data each one prints. Each page declares its own
 * beside itself; here stand those that several pages draw.
 */
export interface ViewData {
  readonly confirm: ConfirmView;
  readonly 'secret-shown': SecretShownView;
}

export type ViewName = keyof ViewData;

/**
 * Answers a request with a view: `text/html` in the response body. The status stays the caller's.
 *
 * Pages are handed this function, because they may not import the host.
 */
export type Render = <Name extends ViewName>(
  ctx: Context,
  name: Name,
  page: ViewData[Name],
) => Promise<void>;

export interface AccountSummary {
  readonly name: string;
  readonly email: string;
}

/** An organization a person reaches now, in the shape `accessOf` gives. */
export interface ReachedOrganization {
  readonly name: string;
  readonly role: string;
  readonly change?: AccessChange;
  readonly warehouses: readonly {
    readonly name: string;
    readonly rights: readonly string[];
    readonly change?: AccessChange;
  }[];
}

/** What is different from what the person approved. */
export interface AccessChange {
  readonly kind: 'added' | 'removed' | 'changed';
  /** `no longer`, `was member` */
  readonly words: string;
}

/** One thing wrong with a form, above it; `field` is the id of the field it is about. */
export interface FormProblem {
  readonly field?: string;
  readonly message: string;
}

/** A secret right after it was made, and what is there once it was seen. */
export interface SecretShownView {
  /** The part of the profile it belongs to, as in `profile-nav`. */
  readonly section: string;
  readonly heading: string;
  /** Absent when it was shown before. */
  readonly secret?: {
    /** What the secret is for, as the person named it. */
    readonly name: string;
    /** What it is called: `API key`, `Client secret`. */
    readonly label: string;
    readonly value: string;
    readonly advice: string;
  };
  /** What to do when it was not copied. */
  readonly remedy: string;
  readonly next: { readonly href: string; readonly label: string };
}

/** What a page says, with times in it, each as people see it where they are. */
export type Sentence = string | readonly (string | Moment)[];

/** Asks before something ends: `question subject?` */
export interface ConfirmView {
  readonly section: string;
  /** A verb: `Disconnect`. */
  readonly question: string;
  /** A name that somebody chose, or what it is about in words. */
  readonly subject: string;
  /** That it is in use, as far as that is known. */
  readonly warning?: Sentence;
  readonly consequences: readonly Sentence[];
  readonly action: string;
  /** Sent along hidden. */
  readonly fields?: readonly { readonly name: string; readonly value: string }[];
  readonly button: string;
  readonly cancel: string;
}
