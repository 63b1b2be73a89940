/** The data of each view: one object called `page`, whose type is checked where a page builds it. */
import type { Context } from 'koa';
import type { Message, Text } from '../base/message.ts';
import type { Moment } from './words/moment.ts';

/**
 * The views in `views/`, by file name, with the data that each one prints. Each page declares its own views in its own
 * file; this file has the views that several pages render.
 */
export interface ViewData {
  readonly confirm: ConfirmView;
  readonly 'secret-shown': SecretShownView;
}

export type ViewName = keyof ViewData;

/**
 * Answers a request with a view as `text/html`; the caller sets the status. Pages receive this
 * function as a parameter, because they may not import the host.
 */
export type Render = <Name extends ViewName>(ctx: Context, name: Name, page: ViewData[Name]) => Promise<void>;

export interface AccountSummary {
  readonly name: string;
  readonly email: string;
}

/** A problem that is shown above a form. `field` is the id of a form field, next to which `inField` is shown. */
export interface FormProblem {
  readonly field?: string;
  readonly message: Text;
  readonly inField?: Text;
}

/** A new secret, or the statement that it was shown already. */
export interface SecretShownView {
  /** The section of the profile, as in `profile-nav`. */
  readonly section: string;
  readonly heading: Text;
  /** Undefined if the secret was shown before. */
  readonly secret?: {
    /** The name that the user gave it. */
    readonly name: string;
    /** The kind of secret: `API key` or `Client secret`. */
    readonly label: Text;
    readonly value: string;
    readonly advice: Text;
  };
  /** What to do if the secret was not copied. */
  readonly remedy: Text;
  readonly next: { readonly href: string; readonly label: Text };
}

/** A text, or parts of a text with times, which the browser shows in the user's time zone. */
export type Sentence = Text | readonly (Text | Moment)[];

/** A page that asks for confirmation. */
export interface ConfirmView {
  readonly section: string;
  /** A question, such as `Disconnect Parcel Pilot?`. */
  readonly heading: Message;
  /** Warns that the subject is in use, if it is. */
  readonly warning?: Sentence;
  readonly consequences: readonly Sentence[];
  readonly notice: Text | undefined;
  /** Why the form had no effect. */
  readonly problems: readonly FormProblem[];
  /** What the user must type, and what was typed; undefined if a click on the button is enough. */
  readonly typed: { readonly what: string; readonly value: string } | undefined;
  /** Unique to each rendered form. */
  readonly creationKey: string;
  readonly action: string;
  /** Hidden fields of the form. */
  readonly fields?: readonly { readonly name: string; readonly value: string }[];
  readonly button: Message;
  readonly cancel: string;
}
