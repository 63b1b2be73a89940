/** What the page of a person's password and sessions prints. */
import type { Moment } from './moment.ts';
import type { FormProblem } from './profile-view.ts';

export interface SecurityView {
  readonly notice: string | undefined;
  readonly email: string;
  /** When the password was given in this browser. */
  readonly signedIn: Moment;
  readonly changePasswordUrl: string;
  readonly signOutEverywhereUrl: string;
  /** What could be disconnected at the same time: `all 3 clients that act for you`. */
  readonly connections: string | undefined;
  readonly isEndingConnections: boolean;
  readonly problems: readonly FormProblem[];
  readonly currentProblem: string | undefined;
  readonly newProblem: string | undefined;
}
