/** What the test of a client prints, and its form on the page of the client. */

import type { ReachedOrganization } from '../view-data.ts';
import type { TestStep } from './test-run.ts';

/** The form that begins a test. */
export interface ClientTestForm {
  readonly action: string;
  /** Otherwise the client has none to type. */
  readonly needsSecret: boolean;
  readonly problem: string | undefined;
  /** How long a test may take, and its result is kept: `5 minutes`. */
  readonly keptFor: string;
}

export interface OAuthClientTestView {
  readonly client: { readonly name: string; readonly url: string };
  readonly form: ClientTestForm;
  /** Absent before a test, and some minutes after one. */
  readonly result: ClientTestResultView | undefined;
  /** A result was asked for that is not kept any more. */
  readonly isGone: boolean;
  /** What a resource server is told about the person; empty where nothing was issued. */
  readonly organizations: readonly ReachedOrganization[];
}

export interface ClientTestResultView {
  readonly isPassed: boolean;
  readonly summary: string;
  readonly steps: readonly TestStep[];
}
