/** What pages need to know about sign-ins with identity providers. */
import type { Context } from 'koa';
import type { Account } from '../../accounts/account.ts';
import { requireNavigation } from '../../provider/cross-origin.ts';
import { get, type Route } from '../routes.ts';

/** The name of the buttons for providers, whose value is the id of the provider. */
export const PROVIDER_FIELD = 'sign_in_with';

/** With this query parameter, the sign-in page is shown even if a provider is the only sign-in method. */
export const CHOOSE = 'choose';

export const UPSTREAM_OUTCOMES = [
  'succeeded',
  // Gatehouse refused the identity, because the account is missing, suspended or linked with another identity.
  'refused',
  // The user has cancelled the sign-in at the provider.
  'cancelled',
  // The provider's answer was invalid, or did not belong to a pending sign-in of this browser.
  'failed',
  // The provider did not accept the client ID or the client secret of Gatehouse.
  'misconfigured',
  'unavailable',
] as const;

export interface UpstreamOutcomes {
  cameFromUpstream(provider: string, outcome: (typeof UPSTREAM_OUTCOMES)[number]): void;
  /** Creates the counters of each provider with 0, so that they appear in the metrics from the start. */
  providersKnown(ids: readonly string[]): void;
}

/** The purpose for which a user is redirected to a provider. */
export type Purpose = SignInPurpose | OwnPurpose;

export interface SignInPurpose {
  readonly to: 'sign in';
  /** The path of this service at which the user continues. */
  readonly target: string;
  /** The id of the waiting interaction. If the interaction still exists, the user continues it instead of `target`. */
  readonly interaction?: string;
  /** True if the provider must re-authenticate the user, even if the user has a session at the provider. */
  readonly isFresh: boolean;
  readonly loginHint?: string | undefined;
}

/**
 * Why a signed-in user authenticates with a provider. The session must still be the same when the user returns.
 * `reset`: the user will choose a new password.
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
  /** The providers whose sign-ins can satisfy the setting `sign_in.require`. */
  readonly strongMethods: readonly NamedProvider[];
  /** The provider of a service that has only one provider and no passwords, so that users need not choose. */
  readonly only: NamedProvider | undefined;
  /** Returns the providers that are linked to the account. */
  listMethods(account: Account): Promise<readonly NamedProvider[]>;
  /** Makes each provider ask who signs in at the next sign-in in this browser. */
  askWho(ctx: Context): void;
  /** True if the provider must ask who signs in. The sign-in page then does not redirect to this provider at once. */
  asksWho(ctx: Context, id: string): boolean;
  /** Redirects the browser to the provider, or shows why this is not possible. */
  begin(ctx: Context, id: string, purpose: Purpose): Promise<void>;
  readonly answers: readonly {
    readonly id: string;
    /** Handles `/login/<id>`. */
    begin(ctx: Context): Promise<void> | void;
    /** Handles `/login/<id>/callback`. */
    finish(ctx: Context): Promise<void>;
  }[];
}

export const upstreamPages = ({ answers }: Pick<UpstreamSignIns, 'answers'>): Route[] =>
  answers.flatMap(({ id, begin, finish }) => [
    get(`/login/${id}`, requireNavigation, begin),
    get(`/login/${id}/callback`, finish),
  ]);
