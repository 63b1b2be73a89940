/** What is under way when a version is replaced: begun on one version, and finished on another. */
import type { RunOperator } from '../../operator/run-operator.ts';
import type { PartnerTokens } from '../../provider/partner-tokens.ts';
import type { TestClient } from '../../support/oauth.ts';
import type { Credentials } from '../../support/person.ts';
import type { Upstream } from '../../support/upstream.ts';
import { PAGES } from './pages.ts';
import { SIGN_INS } from './sign-ins.ts';
import { VALUES } from './values.ts';

/** A deployment with people and clients in it, whichever version serves it at the moment. */
export interface World {
  readonly issuer: string;
  /** The partner's person. Owns `organization` and the client `confidential`. */
  readonly person: Credentials;
  readonly organization: { readonly id: string; readonly name: string };
  readonly clients: {
    readonly confidential: TestClient;
    readonly public: TestClient;
    readonly machine: TestClient;
    readonly resourceServer: TestClient;
  };
  /** The provider `platform`, which finds accounts by their external id. */
  readonly upstream: Upstream;
}

/** The world with what the version that serves it now has begun. */
export interface Beginning extends World {
  /** The operator command of that version. */
  readonly operator: RunOperator;
  /** A browser of the person, signed in on that version. */
  readonly partner: PartnerTokens;
  /** A text that no other beginning has, of lower-case letters and digits. */
  readonly mark: string;
}

export interface CarriedOver {
  /** Stands in the title of a test: it is what an upgrade has lost when that test fails. */
  readonly what: string;
  /**
   * Begins it on the version that serves the world now.
   *
   * @returns what finishes it on the version that serves it then. @throws Error if it was lost.
   */
  begin(beginning: Beginning): Promise<() => Promise<void>>;
}

/** In the order in which they are begun. The last ones live for two minutes, and are finished first. */
export const CARRIED_OVER: readonly CarriedOver[] = [VALUES, SIGN_INS, PAGES].flat();
