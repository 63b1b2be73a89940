/** What the views of the profile have in common, and its first page. */
import type { ReachedOrganization } from './view-data.ts';

/** One thing wrong with a form, above it; `field` is the id of the field it is about. */
export interface FormProblem {
  readonly field?: string;
  readonly message: string;
}

export interface ProfileView {
  readonly organizations: readonly ReachedOrganization[];
  readonly counts: readonly {
    readonly href: string;
    readonly count: number;
    readonly label: string;
  }[];
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
    readonly clientId?: string;
    readonly advice: string;
  };
  /** What to do when it was not copied. */
  readonly remedy: string;
  readonly next: { readonly href: string; readonly label: string };
}

/** Asks before something ends: `question subject?` */
export interface ConfirmView {
  readonly section: string;
  /** A verb: `Disconnect`. */
  readonly question: string;
  /** A name that somebody chose, or what it is about in words. */
  readonly subject: string;
  /** That it is in use, as far as that is known. */
  readonly warning?: string;
  readonly consequences: readonly string[];
  readonly action: string;
  /** Sent along hidden. */
  readonly fields?: readonly { readonly name: string; readonly value: string }[];
  readonly button: string;
  readonly cancel: string;
}
