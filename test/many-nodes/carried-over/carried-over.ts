/** Things that are unfinished during an upgrade: started on one version, and finished on another. */
import type { RunOperator } from '../../operator/run-operator.ts';
import type { PartnerTokens } from '../../provider/partner-tokens.ts';
import type { TestClient } from '../../support/oauth.ts';
import type { Credentials } from '../../support/person.ts';
import type { Upstream } from '../../support/upstream.ts';
import { PAGES } from './pages.ts';
import { SIGN_INS } from './sign-ins.ts';
import { VALUES } from './values.ts';

/** A deployment with users and clients, served by either version. */
export interface World {
  readonly issuer: string;
  /** The user who connects clients. Owns `organization` and the client `confidential`. */
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

/** The deployment, with the command and a browser of the version on which things are started. */
export interface ServedWorld extends World {
  /** The operator command of that version. */
  readonly operator: RunOperator;
  /** A browser of the person, signed in on that version. */
  readonly partner: PartnerTokens;
  /** A text of lower-case letters and digits that is unique to this round. */
  readonly mark: string;
}

export interface CarriedOver {
  /** The thing that an upgrade has lost if the test fails; part of the title of that test. */
  readonly what: string;
  /**
   * Starts the thing on the version whose node currently answers requests.
   *
   * @returns a function that finishes it on the version that answers then; throws if it was lost
   */
  start(world: ServedWorld): Promise<() => Promise<void>>;
}

/**
 * All things, in the order in which they are started. The last ones live for only two minutes, and are finished first.
 */
export const CARRIED_OVER: readonly CarriedOver[] = [VALUES, SIGN_INS, PAGES].flat();
