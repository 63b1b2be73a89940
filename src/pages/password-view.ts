/** What the pages print with which somebody who is not signed in gets a password. */

export interface PasswordView {
  /** Set for a new account, chosen anew for a forgotten one. */
  readonly heading: string;
  readonly email: string;
  readonly action: string;
  /** What the link carried: in the form, so that it is in the address no longer. */
  readonly token: string;
  /** What else acts for the person, in words; absent where nothing does. */
  readonly connections: string | undefined;
  readonly isEndingConnections: boolean;
  readonly problem: string | undefined;
}

export interface PasswordLinkOverView {
  readonly title: string;
  readonly signInUrl: string;
  /** Where another link is sent from; absent where no mail is sent. */
  readonly forgotPasswordUrl: string | undefined;
}

export interface ForgotPasswordView {
  readonly action: string;
  /** What was typed before, or empty. */
  readonly email: string;
  readonly problem: string | undefined;
  /** Back to the sign-in that was begun. */
  readonly signInUrl: string;
  /** Said instead of the form when one was sent. */
  readonly sent: string | undefined;
}
