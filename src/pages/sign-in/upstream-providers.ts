/** What pages need to know about the identity providers: their buttons, and how a sign-in starts. */
import type { Context } from 'koa';
import type { Account } from '../../accounts/account.ts';
import { requireNavigation } from '../../provider/cross-origin.ts';
import { get, type Route } from '../routes.ts';

/** The name of the buttons for providers. Their value is the id of a provider. */
export const PROVIDER_FIELD = 'sign_in_with';

/** A parameter of the sign-in pages: show the page even if there is only one sign-in method to choose. */
export const CHOOSE = 'choose';

export const UPSTREAM_OUTCOMES = [
  'succeeded',
  // Gatehouse refused: the account is missing, suspended or linked with another identity.
  'refused',
  // The user cancelled at the provider.
  'cancelled',
  // The provider's answer proved nothing, or belonged to no pending sign-in of this browser.
  'failed',
  // The provider does not accept our client ID or secret.
  'misconfigured',
  'unavailable',
] as const;

export interface UpstreamOutcomes {
  cameFromUpstream(provider: string, outcome: (typeof UPSTREAM_OUTCOMES)[number]): void;
  /** At the start: creates the counters of each provider with 0, so that they appear in the metrics. */
  providersKnown(ids: readonly string[]): void;
}

/** Why a user is redirected to a provider, which decides what the provider's answer is used for. */
export type Purpose = SignInPurpose | OwnPurpose;

export interface SignInPurpose {
  readonly to: 'sign in';
  /** The path of ours at which the user continues. */
  readonly target: string;
  /** The interaction that waits for the sign-in. The user continues there instead of at `target`. */
  readonly interaction?: string;
  /** True if the user must re-authenticate at the provider, even with an active session there. */
  readonly isFresh: boolean;
  readonly loginHint?: string | undefined;
}

/**
 * The purpose of a signed-in user, who must complete it in the session that began it. `reset`: the user
 * re-authenticates to choose a new password.
 */
export interface OwnPurpose {
  readonly to: 'confirm' | 'reset' | 'link';
  readonly target: string;
  readonly accountId: string;
  readonly sessionUid: string;
}

export interface NamedProvider {
  readonly id: string;
  readonly label: string;
}

export interface UpstreamSignIns {
  readonly providers: readonly NamedProvider[];
  /** The providers whose sign-ins can satisfy `sign_in.require`. */
  readonly strongMethods: readonly NamedProvider[];
  /** The provider, if the service has only this one and no passwords, so that users need not choose. */
  readonly only: NamedProvider | undefined;
  /** The providers linked with this account. */
  listMethods(account: Account): Promise<readonly NamedProvider[]>;
  /** Makes the next sign-in with each provider in this browser ask who signs in. */
  askWho(ctx: Context): void;
  /** True if this provider must still ask who signs in. The sign-in page then waits for a click on its button. */
  asksWho(ctx: Context, id: string): boolean;
  /** Redirects the browser to the provider, or shows why that is not possible. */
  begin(ctx: Context, id: string, purpose: Purpose): Promise<void>;
  /** The handlers of each provider's paths. */
  readonly answers: readonly {
    readonly id: string;
    /** Handles `/login/<id>`. */
    begin(ctx: Context): Promise<void> | void;
    /** Handles `/login/<id>/callback`. */
    finish(ctx: Context): Promise<void>;
  }[];
}

/** The routes where each provider's sign-ins begin and return to. */
export const upstreamPages = ({ answers }: Pick<UpstreamSignIns, 'answers'>): Route[] =>
  answers.flatMap(({ id, begin, finish }) => [
    get(`/login/${id}`, requireNavigation, begin),
    get(`/login/${id}/callback`, finish),
  ]);
