/**
 * The closed table of sign-in: what each event makes of the session of a browser. What is not in the table is
 * refused. `table.test.ts` drives a real service through every row.
 */

/** The session of a browser: no session, or what it may do under `sign_in.require`. */
export type State = 'nobody' | 'free' | 'warned' | 'must add' | 'must use';

/** How a session began. `strong` and `weak` are providers; `weak` is configured as no stronger than a password. */
export type Method = 'password' | 'passkey' | 'strong' | 'weak';

/** The methods of an account besides its password; `unused` is an imported link with `strong`, never used. */
export type Held = 'passkey' | 'strong' | 'weak' | 'unused';

/** When the user must have a strong method: never (no role), soon (the grace period runs), or now (it has ended). */
export type Required = 'never' | 'soon' | 'now';

export type Event =
  | Method
  /** A sign-in that a client requires with `prompt=login`, in the present session. */
  | `${Method} for a client`
  | `confirm by ${Method}`
  | 'add passkey'
  /** The page and the options are fetched before, or the user comes back from the provider then. */
  | `${'add passkey' | 'link strong'} at the end of the grace period`
  | `link ${'strong' | 'weak'}`
  | `remove passkey${'' | ' in another browser'}`
  | `sign out ${'here' | 'elsewhere' | 'everywhere' | 'everywhere in another browser'}`
  | `set a new password${'' | ' in another browser'}`
  | 'use invitation'
  | 'use forgotten'
  | 'use forgotten and sign in'
  /** The other user, who began the session, authenticated with a passkey. */
  | 'password for a client in the session of another user'
  | `use ${'invitation' | 'forgotten'} in another browser`
  | 'finish at strong in another browser'
  /** Something happens in the browser, or to the session, while the user is at the provider `strong`. */
  | `finish link after a sign-${'in' | 'out'}`
  | `finish confirmation after a sign-in${'' | ' as another user'}`
  | 'finish reset after an end of all sessions'
  | 'get a role'
  | 'end of the grace period'
  /** Of all users: `sessions end --all`. */
  | 'end of every session'
  | 'suspension'
  | 'end of the suspension'
  /** A reload of the settings. */
  | `weak counts as ${'strong' | 'weak'}`
  | 'idle'
  | 'too old'
  | 'ten minutes'
  /** Confirms at the provider `strong`, to choose a new password. */
  | 'reset by strong'
  /** The link of such a reset is opened only after this event. */
  | `open the link of a reset after sign out ${'here' | 'everywhere'}`
  /** Confirms with an imported, never used link of another user; then that user signs in with it. */
  | 'confirm by an unused link of another user, who then signs in'
  | 'approve a client'
  /** Signs in with the password for a client; approves on that page after an event in another tab. */
  | `approve a client after ${'add passkey' | 'confirm by passkey' | 'sign out everywhere'}`
  /** The form is sent after ten minutes, so it asks for the password, with which it is sent again. */
  | 'remove passkey and confirm by password';

export interface Row {
  /** The number of the rule, in the order of `RULES`. */
  readonly rule: keyof typeof RULES;
  readonly held: readonly Held[];
  readonly required: Required;
  /** How the session began that the events find; absent for a browser without one. */
  readonly from?: Method;
  readonly events: readonly Event[];
  /** The session after the last event. */
  readonly becomes: State;
  /** The path where the last event leads; checked only if present. */
  readonly at?: string;
  /** The latest entry of the user's activity log; checked only if present. */
  readonly log?: string;
  /** The number of methods besides the password afterwards; by default as many as before. */
  readonly methods?: number;
}

export const RULES = {
  1: 'a correct password starts a session, unless the user must use a strong method',
  2: 'a correct password alone is refused if the user must use a strong method',
  3: 'a passkey starts a session that is free',
  4: 'a sign-in at a provider starts a session, which is free only if the provider is strong',
  5: 'the first use of an imported link asks what else has access',
  6: 'an invitation ends every session and sets a password, which signs in unless the user must use a strong method',
  7: 'a mailed link sets a password, which does not sign in if the user has a strong method and must have one',
  10: 'who may act gets every page and code',
  13: 'a session that must add a method may add the first one, and stays the same session',
  14: 'a session that must use a method adds none',
  15: 'a session that may act adds and removes methods',
  16: 'a confirmation with a password is a proof of the same session',
  17: 'a confirmation with a passkey makes the session free',
  18: 'a confirmation at a provider adds a proof and takes none away',
  19: 'a link, a confirmation or a reset at a provider is completed only by the session that began it',
  20: 'an answer of a provider is accepted only in the browser that asked for it',
  21: 'a sign-out ends the session of this browser',
  22: 'a sign-out elsewhere ends it',
  23: 'an end of all sessions of the account ends it',
  24: 'a suspension (its end brings nothing back), the idle time and the maximum age end it',
  25: 'a new role warns, and the end of the grace period requires',
  27: 'the present settings decide which proofs and methods are strong',
} as const;

const QUESTION = '/profile/security/first-sign-in';
const STRONGER = '/profile/stronger-sign-in';

/** The columns of a row. A session that begins by `nobody` is none. */
type Columns = readonly [
  rule: Row['rule'],
  required: Required,
  held: readonly Held[],
  from: Method | 'nobody',
  events: readonly Event[],
  becomes: State,
  also?: Pick<Row, 'at' | 'log' | 'methods'>,
];

const TABLE: readonly Columns[] = [
  [1, 'never', [], 'nobody', ['password'], 'free', { log: 'signed_in' }],
  [1, 'soon', ['passkey'], 'nobody', ['password'], 'warned'],
  [1, 'now', [], 'nobody', ['password'], 'must add', { at: STRONGER }],
  [1, 'now', [], 'nobody', ['password for a client'], 'must add', { at: STRONGER }],
  [1, 'soon', [], 'nobody', ['password for a client in the session of another user'], 'warned', { log: 'signed_in' }],
  [2, 'now', ['passkey'], 'nobody', ['password'], 'nobody', { at: '/login', log: 'sign_in_refused' }],
  [2, 'now', ['passkey'], 'passkey', ['password for a client'], 'free'],
  [2, 'now', ['passkey'], 'password', ['password for a client'], 'must use'],
  [3, 'now', ['passkey'], 'nobody', ['passkey'], 'free', { log: 'signed_in' }],
  [3, 'now', ['passkey'], 'password', ['passkey for a client'], 'free'],
  [4, 'now', ['weak'], 'nobody', ['weak'], 'must add', { at: STRONGER }],
  [4, 'now', ['weak', 'passkey'], 'nobody', ['weak'], 'must use', { at: STRONGER }],
  [4, 'now', ['strong'], 'nobody', ['strong'], 'free', { at: '/profile', log: 'signed_in' }],
  [4, 'now', ['strong'], 'password', ['strong for a client'], 'free'],
  [5, 'never', ['unused'], 'nobody', ['strong'], 'free', { at: QUESTION }],
  [5, 'never', ['unused'], 'password', ['ten minutes', 'confirm by strong'], 'free', { at: QUESTION }],
  [5, 'never', ['unused'], 'password', ['reset by strong'], 'free', { at: '/password' }],
  [5, 'never', ['unused'], 'password', ['reset by strong', 'sign out here', 'strong'], 'free', { at: QUESTION }],
  [
    5,
    'never',
    ['strong'],
    'password',
    ['confirm by an unused link of another user, who then signs in'],
    'free',
    { at: QUESTION },
  ],

  [6, 'never', [], 'password', ['use invitation in another browser'], 'nobody', { log: 'signed_in' }],
  [6, 'never', [], 'password', ['use invitation'], 'free', { at: '/profile', log: 'signed_in' }],
  [6, 'now', [], 'nobody', ['use invitation'], 'must add', { at: STRONGER }],
  [6, 'now', ['passkey'], 'nobody', ['use invitation'], 'nobody', { at: '/login' }],
  [7, 'never', [], 'nobody', ['use forgotten'], 'nobody', { at: '/login', log: 'password_changed' }],
  [7, 'never', ['passkey'], 'nobody', ['use forgotten and sign in'], 'free'],
  [7, 'soon', ['passkey'], 'nobody', ['use forgotten and sign in'], 'nobody'],
  [7, 'now', [], 'nobody', ['use forgotten and sign in'], 'must add', { at: STRONGER }],
  [10, 'never', [], 'password', ['approve a client'], 'free', { at: '/callback', log: 'connected' }],
  [10, 'now', [], 'password', ['approve a client'], 'must add', { at: STRONGER }],
  [13, 'now', [], 'password', ['add passkey'], 'free', { log: 'passkey_added', methods: 1 }],
  [13, 'soon', [], 'password', ['add passkey at the end of the grace period'], 'free', { methods: 1 }],
  [13, 'now', [], 'password', ['link strong'], 'free', { at: '/profile', methods: 1 }],
  [13, 'now', [], 'password', ['link weak'], 'must add', { methods: 1 }],
  [13, 'now', [], 'password', ['ten minutes', 'add passkey'], 'must add', { methods: 0 }],
  [13, 'now', [], 'password', ['ten minutes', 'confirm by password', 'add passkey'], 'free', { methods: 1 }],
  [14, 'soon', ['passkey'], 'password', ['add passkey at the end of the grace period'], 'must use'],
  [14, 'now', ['passkey'], 'password', ['link strong'], 'must use', { log: 'signed_in' }],
  [14, 'soon', ['passkey'], 'password', ['link strong at the end of the grace period'], 'must use'],
  [15, 'soon', [], 'password', ['link strong'], 'free', { log: 'identity_linked', methods: 1 }],
  [15, 'never', ['passkey'], 'password', ['remove passkey'], 'free', { log: 'passkey_removed', methods: 0 }],
  [15, 'never', ['passkey'], 'password', ['remove passkey and confirm by password'], 'free', { methods: 0 }],
  [15, 'never', ['passkey'], 'password', ['remove passkey in another browser'], 'nobody', { methods: 0 }],

  [16, 'soon', [], 'password', ['ten minutes', 'confirm by password'], 'warned', { log: 'signed_in' }],
  [16, 'never', ['passkey'], 'passkey', ['ten minutes', 'confirm by password', 'get a role'], 'free'],
  [17, 'never', ['passkey'], 'password', ['ten minutes', 'confirm by passkey', 'get a role'], 'free'],
  [17, 'soon', [], 'nobody', ['approve a client after add passkey'], 'free', { at: '/callback', methods: 1 }],
  [17, 'soon', ['passkey'], 'nobody', ['approve a client after confirm by passkey'], 'free', { at: '/callback' }],
  [18, 'never', ['strong'], 'password', ['ten minutes', 'confirm by strong', 'get a role'], 'free'],
  [18, 'now', ['passkey', 'weak'], 'passkey', ['ten minutes', 'confirm by weak'], 'free'],
  [19, 'never', [], 'password', ['finish link after a sign-in'], 'free', { methods: 0 }],
  [19, 'never', [], 'password', ['finish link after a sign-out'], 'nobody', { methods: 0 }],
  [19, 'never', ['strong'], 'password', ['finish confirmation after a sign-in', 'get a role'], 'warned'],
  [19, 'never', ['strong'], 'password', ['finish confirmation after a sign-in as another user'], 'free'],
  [19, 'never', ['strong'], 'password', ['finish reset after an end of all sessions'], 'nobody'],
  [19, 'never', ['strong'], 'strong', ['open the link of a reset after sign out here'], 'nobody'],
  [19, 'never', ['strong'], 'strong', ['open the link of a reset after sign out everywhere'], 'free'],
  [20, 'never', ['strong'], 'nobody', ['finish at strong in another browser'], 'nobody'],

  [21, 'never', [], 'password', ['sign out here'], 'nobody'],
  [22, 'never', [], 'password', ['sign out elsewhere'], 'nobody', { log: 'signed_out_elsewhere' }],
  [23, 'never', [], 'password', ['sign out everywhere'], 'free', { log: 'signed_out_everywhere' }],
  [23, 'never', [], 'password', ['sign out everywhere in another browser'], 'nobody'],
  [23, 'never', ['passkey'], 'passkey', ['end of every session'], 'nobody'],
  [23, 'now', ['strong'], 'strong', ['ten minutes', 'confirm by strong', 'sign out everywhere'], 'free'],
  [23, 'soon', ['passkey'], 'passkey', ['sign out everywhere in another browser', 'password for a client'], 'warned'],
  [23, 'never', [], 'password', ['set a new password'], 'free', { log: 'password_changed' }],
  [23, 'never', [], 'password', ['set a new password in another browser'], 'nobody'],
  [23, 'never', [], 'nobody', ['approve a client after sign out everywhere'], 'free', { at: '/callback' }],
  [24, 'never', [], 'password', ['suspension', 'password'], 'nobody', { log: 'sign_in_failed' }],
  [24, 'never', ['passkey'], 'nobody', ['suspension', 'passkey'], 'nobody', { log: 'passkey_refused' }],
  [24, 'never', ['strong'], 'nobody', ['suspension', 'strong'], 'nobody', { log: 'sign_in_refused' }],
  [24, 'never', [], 'password', ['suspension', 'end of the suspension'], 'nobody'],
  [24, 'never', [], 'password', ['idle'], 'nobody'],
  [24, 'never', ['passkey'], 'passkey', ['too old'], 'nobody'],
  [25, 'never', [], 'password', ['get a role', 'end of the grace period'], 'must add'],
  [25, 'never', ['strong'], 'strong', ['get a role', 'end of the grace period'], 'free'],

  [27, 'soon', ['weak'], 'weak', ['weak counts as strong', 'weak counts as weak'], 'warned'],
  [27, 'now', ['weak'], 'password', ['weak counts as strong'], 'must use'],
];

export const ROWS = TABLE.map(
  ([rule, required, held, from, events, becomes, also]): Row => ({
    ...{ rule, required, held, events, becomes, ...also },
    ...(from !== 'nobody' && { from }),
  }),
);

/** Pairs of first methods that two browsers with the password add at the same moment; one is stored. */
export const AT_ONCE: readonly (readonly ('passkey' | 'strong')[])[] = [
  ['passkey', 'passkey'],
  ['passkey', 'strong'],
];

/** Events after which a cookie that was copied before is worthless, even with an older Redis. */
export const ENDS_OF_A_COOKIE: readonly Event[] = [
  'confirm by password',
  'password for a client',
  'sign out here',
  'sign out elsewhere',
  'sign out everywhere',
  'sign out everywhere in another browser',
  'use invitation in another browser',
];
