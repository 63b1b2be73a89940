/** What pages know of the providers that people come from: each a button, and a way there. */
import type { Context } from 'koa';
import type { Account } from '../../accounts/account.ts';
import { requireNavigation } from '../../provider/cross-origin.ts';
import { get, type Route } from '../routes.ts';

/** The button of a provider: its value is the id. */
export const WAY_FIELD = 'sign_in_with';

/** A parameter of the sign-in pages: draw them, also where there is one way only. */
export const CHOOSE = 'choose';

export const UPSTREAM_OUTCOMES = [
  'succeeded',
  // By us: no account, a suspended one, or one that is linked otherwise.
  'refused',
  // By the person, there.
  'cancelled',
  // Its answer proved nothing, or belonged to no sign-in of this browser.
  'failed',
  // It does not accept our client ID or secret.
  'misconfigured',
  'unavailable',
  'signed_out',
  'sign_out_failed',
] as const;

export interface UpstreamOutcomes {
  cameFromUpstream(provider: string, outcome: (typeof UPSTREAM_OUTCOMES)[number]): void;
  /** So that what is counted of each begins at 0. */
  providersKnown(ids: readonly string[]): void;
}

/** What somebody signs in for. */
export interface Purpose {
  /** A path of ours, where they go on. */
  readonly target: string;
  /** The interaction that waits for it, in place of the target. */
  readonly interaction?: string;
  /** The account whose person is to confirm that it is them; nobody else comes in then. */
  readonly confirms?: string;
  /** And then chooses another password: what `confirms` is for. */
  readonly resets?: boolean;
  /** The account, signed in here, that is to be linked with who they are there. */
  readonly links?: string;
  /** They must prove it there now, however long they have been signed in there. */
  readonly isFresh: boolean;
  readonly loginHint?: string | undefined;
}

export interface WayIn {
  readonly id: string;
  readonly label: string;
}

/** Where the people of an address come from, whoever of them has an account. */
export interface HintedWay extends WayIn {
  /** Of the address. */
  readonly domain: string;
}

/** Where somebody of such an address signs in, said to whoever types one. */
export const comesFrom = ({ domain, label }: HintedWay): string =>
  `People of ${domain} sign in with ${label}.`;

export interface UpstreamSignIns {
  /** In the order of the settings. */
  readonly ways: readonly WayIn[];
  /** Those whose sign-ins can satisfy `sign_in.require`. */
  readonly strongWays: readonly WayIn[];
  /** Where there is one provider, and there are no passwords: nobody needs to choose. */
  readonly only: WayIn | undefined;
  /** Some way is that of a domain. */
  readonly hasHints: boolean;
  /** By the domain of the address alone. */
  wayOf(email: string): HintedWay | undefined;
  /** Those with which this account has signed in. */
  waysOf(account: Account): Promise<readonly WayIn[]>;
  /** The next sign-in with each provider in this browser asks the person who they are. */
  askWho(ctx: Context): void;
  /** Whether this provider has still to ask: then the sign-in page forwards only after a click. */
  asksWho(ctx: Context, id: string): boolean;
  /** Sends the browser there, or says why not. */
  begin(ctx: Context, id: string, purpose: Purpose): Promise<void>;
  /** What each provider's addresses answer. */
  readonly answers: readonly {
    readonly id: string;
    /** `/login/<id>` */
    begin(ctx: Context): Promise<void> | void;
    /** `/login/<id>/callback` */
    finish(ctx: Context): Promise<void>;
  }[];
}

/** Where each provider's sign-ins begin and come back to. */
export const upstreamPages = ({ answers }: Pick<UpstreamSignIns, 'answers'>): Route[] =>
  answers.flatMap(({ id, begin, finish }) => [
    get(`/login/${id}`, requireNavigation, begin),
    get(`/login/${id}/callback`, finish),
  ]);
