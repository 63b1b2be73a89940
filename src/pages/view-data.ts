/** The types of the data that pages pass to their views, where the data is called `page`. */
import type { Context } from 'koa';
import type { Message, Text } from '../base/message.ts';
import type { Moment } from './words/moment.ts';

/**
 * The data of each view in `views/`, by file name. Each page declares its own views in its own file; this file has the
 * views that several pages render.
 */
export interface ViewData {
  readonly confirm: ConfirmView;
  /** The page that shows a new secret once. */
  readonly 'secret-shown': {
    /** The section of the profile, as in the view `profile-nav`. */
    readonly section: string;
    readonly heading: Text;
    /** Undefined if the secret was shown before. */
    readonly secret?: {
      readonly name: string;
      /** `API key` or `Client secret`. */
      readonly label: Text;
      readonly value: string;
      readonly advice: Text;
    };
    /** Says what to do if the user has not copied the secret. */
    readonly remedy: Text;
    readonly next: { readonly href: string; readonly label: Text };
  };
}

export type ViewName = keyof ViewData;

/**
 * Answers a request with a view as `text/html`. The caller sets the status. Pages receive this function as a parameter,
 * because they must not import the host.
 */
export type Render = <Name extends ViewName>(ctx: Context, name: Name, page: ViewData[Name]) => Promise<void>;

export interface AccountSummary {
  readonly name: string;
  readonly email: string;
}

/** `message` is shown above a form, and `inField` next to the form field with the id `field`. */
export interface FormProblem {
  readonly field?: string;
  readonly message: Text;
  readonly inField?: Text;
}

/** A text, or parts of a text. The browser shows each `Moment` in the user's time zone. */
export type Sentence = Text | readonly (Text | Moment)[];

/** A page that asks the user to confirm. */
export interface ConfirmView {
  readonly section: string;
  /** A question, such as `Disconnect Parcel Pilot?`. */
  readonly heading: Message;
  /** Warns that what the user wants to end is still in use, for example a client secret. */
  readonly warning?: Sentence;
  readonly consequences: readonly Sentence[];
  readonly notice: Text | undefined;
  readonly problems: readonly FormProblem[];
  /** The text that the user must type, and what the user has typed; undefined if the user need not type anything. */
  readonly typed: { readonly what: string; readonly value: string } | undefined;
  /** A value that is unique to each rendered form. */
  readonly creationKey: string;
  readonly action: string;
  readonly fields?: readonly { readonly name: string; readonly value: string }[];
  readonly button: Message;
  readonly cancel: string;
}
