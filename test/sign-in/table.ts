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

/** What ends the session that began in this browser. */
type EndOfSession = `sign out ${'here' | 'elsewhere' | 'everywhere' | 'at strong'}` | 'end of every session';

export type Event =
  | Method
  /** A sign-in that a client requires with `prompt=login`, in the present session. */
  | `${Method} for a client`
  | `confirm by ${Method}`
  | 'add passkey'
  /** The page and the options are fetched before. */
  | 'add passkey at the end of the grace period'
  | `link ${'strong' | 'weak'}`
  | 'remove passkey'
  | `sign out ${'here' | 'elsewhere' | 'everywhere' | 'everywhere in another browser' | 'at strong' | 'at weak'}`
  | 'set a new password'
  | 'use invitation'
  | 'use forgotten'
  | 'use forgotten and sign in'
  /** The other user, who began the session, authenticated with a passkey. */
  | 'password for a client in the session of another user'
  | `use ${'invitation' | 'forgotten'} in another browser`
  | 'finish at strong in another browser'
  /** Something happens in the browser, or to the session, while the user is at the provider `strong`. */
  | `finish ${'link' | 'confirmation' | 'reset'} after ${'a sign-in' | 'a sign-out' | 'a sign-in as another user' | 'an end of all sessions'}`
  | 'get a role'
  | 'end of the grace period'
  /** Of all users: `sessions end --all`. */
  | 'end of every session'
  | 'suspension'
  | 'end of the suspension'
  | 'idle'
  | 'too old'
  | 'ten minutes'
  /** Confirms at the provider `strong`, to choose a new password. */
  | 'reset by strong'
  /** The link of such a reset is opened only after this event. */
  | `open the link of a reset after ${EndOfSession}`
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
  readonly held?: readonly Held[];
  readonly required?: Required;
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
  22: 'a sign-out elsewhere, or at any provider that proved the session, ends it',
  23: 'an end of all sessions of the account ends it',
  24: 'a suspension, the idle time and the maximum age end it',
  25: 'a new role warns, and the end of the grace period requires',
} as const;

const QUESTION = '/profile/security/first-sign-in';
const STRONGER = '/profile/stronger-sign-in';

export const ROWS: readonly Row[] = [
  { rule: 1, events: ['password'], becomes: 'free', log: 'signed_in' },
  { rule: 1, held: ['passkey'], events: ['password'], becomes: 'free' },
  { rule: 1, required: 'soon', events: ['password'], becomes: 'warned' },
  { rule: 1, required: 'soon', held: ['passkey'], events: ['password'], becomes: 'warned' },
  { rule: 1, required: 'now', events: ['password'], becomes: 'must add', at: STRONGER },
  { rule: 1, required: 'now', held: ['weak'], events: ['password'], becomes: 'must add' },
  { rule: 1, required: 'now', events: ['password for a client'], becomes: 'must add', at: STRONGER },
  {
    rule: 1,
    required: 'soon',
    events: ['password for a client in the session of another user'],
    becomes: 'warned',
    log: 'signed_in',
  },
  {
    rule: 2,
    required: 'now',
    held: ['passkey'],
    events: ['password'],
    becomes: 'nobody',
    at: '/login',
    log: 'sign_in_refused',
  },
  { rule: 2, required: 'now', held: ['strong'], events: ['password'], becomes: 'nobody' },
  { rule: 2, required: 'now', held: ['passkey'], from: 'passkey', events: ['password for a client'], becomes: 'free' },
  {
    rule: 2,
    required: 'now',
    held: ['passkey'],
    from: 'password',
    events: ['password for a client'],
    becomes: 'must use',
  },

  { rule: 3, held: ['passkey'], events: ['passkey'], becomes: 'free', log: 'signed_in' },
  { rule: 3, required: 'now', held: ['passkey'], events: ['passkey'], becomes: 'free' },
  { rule: 3, required: 'now', held: ['passkey'], from: 'password', events: ['passkey for a client'], becomes: 'free' },
  {
    rule: 3,
    required: 'now',
    held: ['passkey', 'weak'],
    from: 'weak',
    events: ['passkey for a client'],
    becomes: 'free',
  },

  { rule: 4, held: ['strong'], events: ['strong'], becomes: 'free', at: '/profile', log: 'signed_in' },
  { rule: 4, held: ['weak'], events: ['weak'], becomes: 'free' },
  { rule: 4, required: 'soon', held: ['weak'], events: ['weak'], becomes: 'warned' },
  { rule: 4, required: 'now', held: ['weak'], events: ['weak'], becomes: 'must add', at: STRONGER },
  { rule: 4, required: 'now', held: ['weak', 'passkey'], events: ['weak'], becomes: 'must use', at: STRONGER },
  { rule: 4, required: 'now', held: ['strong'], events: ['strong'], becomes: 'free' },
  { rule: 4, required: 'now', held: ['strong'], from: 'password', events: ['strong for a client'], becomes: 'free' },
  { rule: 5, held: ['unused'], events: ['strong'], becomes: 'free', at: QUESTION },
  {
    rule: 5,
    held: ['unused'],
    from: 'password',
    events: ['ten minutes', 'confirm by strong'],
    becomes: 'free',
    at: QUESTION,
  },

  { rule: 5, held: ['unused'], from: 'password', events: ['reset by strong'], becomes: 'free', at: '/password' },
  {
    rule: 5,
    held: ['unused'],
    from: 'password',
    events: ['reset by strong', 'sign out here', 'strong'],
    becomes: 'free',
    at: QUESTION,
  },
  {
    rule: 5,
    held: ['strong'],
    from: 'password',
    events: ['confirm by an unused link of another user, who then signs in'],
    becomes: 'free',
    at: QUESTION,
  },

  {
    rule: 6,
    from: 'password',
    events: ['use invitation in another browser'],
    becomes: 'nobody',
    log: 'signed_in',
  },
  { rule: 6, events: ['use invitation'], becomes: 'free', at: '/profile', log: 'signed_in' },
  { rule: 6, from: 'password', events: ['use invitation'], becomes: 'free', at: '/profile' },
  { rule: 6, held: ['passkey'], events: ['use invitation'], becomes: 'free' },
  { rule: 6, required: 'soon', held: ['strong'], events: ['use invitation'], becomes: 'warned' },
  { rule: 6, required: 'now', events: ['use invitation'], becomes: 'must add', at: STRONGER },
  { rule: 6, required: 'now', held: ['passkey'], events: ['use invitation'], becomes: 'nobody', at: '/login' },
  { rule: 7, events: ['use forgotten'], becomes: 'nobody', at: '/login', log: 'password_changed' },
  { rule: 7, events: ['use forgotten and sign in'], becomes: 'free' },
  { rule: 7, held: ['passkey'], events: ['use forgotten and sign in'], becomes: 'free' },
  { rule: 7, required: 'soon', events: ['use forgotten and sign in'], becomes: 'warned' },
  { rule: 7, required: 'soon', held: ['passkey'], events: ['use forgotten and sign in'], becomes: 'nobody' },
  { rule: 7, required: 'now', events: ['use forgotten and sign in'], becomes: 'must add', at: STRONGER },
  { rule: 7, required: 'now', held: ['strong'], events: ['use forgotten and sign in'], becomes: 'nobody' },

  { rule: 10, from: 'password', events: ['approve a client'], becomes: 'free', at: '/callback', log: 'connected' },
  { rule: 10, from: 'password', required: 'soon', events: ['approve a client'], becomes: 'warned', at: '/callback' },
  { rule: 10, from: 'password', required: 'now', events: ['approve a client'], becomes: 'must add', at: STRONGER },

  {
    rule: 13,
    required: 'now',
    from: 'password',
    events: ['add passkey'],
    becomes: 'free',
    methods: 1,
    log: 'passkey_added',
  },
  {
    rule: 13,
    required: 'soon',
    from: 'password',
    events: ['add passkey at the end of the grace period'],
    becomes: 'free',
    methods: 1,
  },
  { rule: 13, required: 'now', from: 'password', events: ['link strong'], becomes: 'free', methods: 1, at: '/profile' },
  { rule: 13, required: 'now', from: 'password', events: ['link weak'], becomes: 'must add', methods: 1 },
  { rule: 13, required: 'now', held: ['weak'], from: 'weak', events: ['add passkey'], becomes: 'free', methods: 2 },
  {
    rule: 13,
    required: 'now',
    from: 'password',
    events: ['ten minutes', 'add passkey'],
    becomes: 'must add',
    methods: 0,
  },
  {
    rule: 13,
    required: 'now',
    from: 'password',
    events: ['ten minutes', 'confirm by password', 'add passkey'],
    becomes: 'free',
    methods: 1,
  },
  {
    rule: 13,
    required: 'now',
    held: ['weak'],
    from: 'weak',
    events: ['add passkey', 'sign out at weak'],
    becomes: 'nobody',
    methods: 2,
  },
  {
    rule: 13,
    required: 'now',
    held: ['weak'],
    from: 'weak',
    events: ['link strong', 'sign out at weak'],
    becomes: 'nobody',
    methods: 2,
  },
  {
    rule: 14,
    required: 'soon',
    held: ['passkey'],
    from: 'password',
    events: ['add passkey at the end of the grace period'],
    becomes: 'must use',
  },
  { rule: 14, required: 'now', held: ['passkey'], from: 'password', events: ['add passkey'], becomes: 'must use' },
  {
    rule: 14,
    required: 'now',
    held: ['passkey'],
    from: 'password',
    events: ['link strong'],
    becomes: 'must use',
    log: 'signed_in',
  },
  { rule: 14, required: 'now', held: ['passkey', 'weak'], from: 'weak', events: ['add passkey'], becomes: 'must use' },
  { rule: 15, from: 'password', events: ['add passkey'], becomes: 'free', methods: 1 },
  { rule: 15, required: 'soon', from: 'password', events: ['add passkey'], becomes: 'free', methods: 1 },
  {
    rule: 15,
    required: 'soon',
    from: 'password',
    events: ['link strong'],
    becomes: 'free',
    methods: 1,
    log: 'identity_linked',
  },
  { rule: 15, required: 'soon', from: 'password', events: ['link weak'], becomes: 'warned', methods: 1 },
  {
    rule: 15,
    required: 'now',
    held: ['passkey'],
    from: 'passkey',
    events: ['link strong'],
    becomes: 'free',
    methods: 2,
  },
  {
    rule: 15,
    held: ['passkey'],
    from: 'password',
    events: ['remove passkey'],
    becomes: 'free',
    methods: 0,
    log: 'passkey_removed',
  },
  {
    rule: 15,
    held: ['passkey'],
    from: 'password',
    events: ['remove passkey and confirm by password'],
    becomes: 'free',
    methods: 0,
  },

  { rule: 16, from: 'password', events: ['ten minutes', 'confirm by password'], becomes: 'free', log: 'signed_in' },
  { rule: 16, required: 'soon', from: 'password', events: ['ten minutes', 'confirm by password'], becomes: 'warned' },
  {
    rule: 16,
    held: ['passkey'],
    from: 'passkey',
    events: ['ten minutes', 'confirm by password', 'get a role'],
    becomes: 'free',
  },
  {
    rule: 16,
    held: ['weak'],
    from: 'weak',
    events: ['ten minutes', 'confirm by password', 'sign out at weak'],
    becomes: 'nobody',
  },
  {
    rule: 17,
    held: ['passkey'],
    from: 'password',
    events: ['ten minutes', 'confirm by passkey', 'get a role'],
    becomes: 'free',
  },
  {
    rule: 17,
    required: 'soon',
    held: ['passkey'],
    from: 'password',
    events: ['ten minutes', 'confirm by passkey'],
    becomes: 'free',
  },
  {
    rule: 17,
    held: ['passkey', 'weak'],
    from: 'weak',
    events: ['ten minutes', 'confirm by passkey', 'sign out at weak'],
    becomes: 'nobody',
  },
  {
    rule: 17,
    required: 'soon',
    events: ['approve a client after add passkey'],
    becomes: 'free',
    methods: 1,
    at: '/callback',
  },
  {
    rule: 17,
    required: 'soon',
    held: ['passkey'],
    events: ['approve a client after confirm by passkey'],
    becomes: 'free',
    at: '/callback',
  },
  {
    rule: 18,
    held: ['strong'],
    from: 'password',
    events: ['ten minutes', 'confirm by strong', 'get a role'],
    becomes: 'free',
  },
  {
    rule: 18,
    required: 'now',
    held: ['passkey', 'weak'],
    from: 'passkey',
    events: ['ten minutes', 'confirm by weak'],
    becomes: 'free',
  },
  {
    rule: 18,
    held: ['strong'],
    from: 'password',
    events: ['ten minutes', 'confirm by strong', 'sign out at strong'],
    becomes: 'nobody',
  },
  {
    rule: 22,
    held: ['strong', 'weak'],
    from: 'weak',
    events: ['ten minutes', 'confirm by strong', 'sign out at weak'],
    becomes: 'nobody',
  },
  {
    rule: 22,
    held: ['strong', 'weak'],
    from: 'weak',
    events: ['ten minutes', 'confirm by strong', 'sign out at strong'],
    becomes: 'nobody',
  },
  { rule: 19, from: 'password', events: ['finish link after a sign-in'], becomes: 'free', methods: 0 },
  { rule: 19, from: 'password', events: ['finish link after a sign-out'], becomes: 'nobody', methods: 0 },
  { rule: 19, from: 'password', events: ['finish link after a sign-in as another user'], becomes: 'free', methods: 0 },
  { rule: 19, from: 'password', events: ['finish link after an end of all sessions'], becomes: 'nobody', methods: 0 },
  {
    rule: 19,
    held: ['strong'],
    from: 'password',
    events: ['finish confirmation after a sign-in', 'get a role'],
    becomes: 'warned',
  },
  { rule: 19, held: ['strong'], from: 'password', events: ['finish confirmation after a sign-out'], becomes: 'nobody' },
  {
    rule: 19,
    held: ['strong'],
    from: 'password',
    events: ['finish confirmation after a sign-in as another user'],
    becomes: 'free',
  },
  {
    rule: 19,
    held: ['strong'],
    from: 'password',
    events: ['finish confirmation after an end of all sessions'],
    becomes: 'nobody',
  },
  ...(['a sign-in', 'a sign-in as another user'] as const).map(
    (then): Row => ({
      rule: 19,
      held: ['strong'],
      from: 'password',
      events: [`finish reset after ${then}`],
      becomes: 'free',
    }),
  ),
  ...(['a sign-out', 'an end of all sessions'] as const).map(
    (then): Row => ({
      rule: 19,
      held: ['strong'],
      from: 'password',
      events: [`finish reset after ${then}`],
      becomes: 'nobody',
    }),
  ),
  ...(['sign out here', 'sign out elsewhere', 'sign out at strong', 'end of every session'] as const).map(
    (end): Row => ({
      rule: 19,
      held: ['strong'],
      from: 'strong',
      events: [`open the link of a reset after ${end}`],
      becomes: 'nobody',
    }),
  ),
  {
    rule: 19,
    held: ['strong'],
    from: 'strong',
    events: ['open the link of a reset after sign out everywhere'],
    becomes: 'free',
  },
  { rule: 20, held: ['strong'], events: ['finish at strong in another browser'], becomes: 'nobody' },

  { rule: 21, from: 'password', events: ['sign out here'], becomes: 'nobody' },
  { rule: 21, required: 'now', from: 'password', events: ['sign out here'], becomes: 'nobody' },
  { rule: 21, required: 'now', held: ['passkey'], from: 'password', events: ['sign out here'], becomes: 'nobody' },
  { rule: 22, from: 'password', events: ['sign out elsewhere'], becomes: 'nobody', log: 'signed_out_elsewhere' },
  { rule: 22, held: ['passkey'], from: 'passkey', events: ['sign out elsewhere'], becomes: 'nobody' },
  {
    rule: 22,
    held: ['weak'],
    from: 'weak',
    events: ['sign out at weak'],
    becomes: 'nobody',
    log: 'signed_out_upstream',
  },
  { rule: 22, held: ['strong', 'weak'], from: 'weak', events: ['sign out at strong'], becomes: 'free' },
  { rule: 22, held: ['weak'], from: 'weak', events: ['password for a client', 'sign out at weak'], becomes: 'nobody' },
  { rule: 22, held: ['weak'], from: 'password', events: ['sign out at weak'], becomes: 'free' },
  { rule: 23, from: 'password', events: ['sign out everywhere'], becomes: 'free', log: 'signed_out_everywhere' },
  { rule: 23, from: 'password', events: ['sign out everywhere in another browser'], becomes: 'nobody' },
  { rule: 23, held: ['passkey'], from: 'passkey', events: ['end of every session'], becomes: 'nobody' },
  {
    rule: 23,
    required: 'now',
    held: ['strong'],
    from: 'strong',
    events: ['ten minutes', 'confirm by strong', 'sign out everywhere'],
    becomes: 'free',
  },
  {
    rule: 23,
    required: 'soon',
    held: ['passkey'],
    from: 'passkey',
    events: ['sign out everywhere in another browser', 'password for a client'],
    becomes: 'warned',
  },
  { rule: 23, from: 'password', events: ['set a new password'], becomes: 'free', log: 'password_changed' },
  {
    rule: 23,
    held: ['weak'],
    from: 'weak',
    events: ['set a new password', 'sign out at weak'],
    becomes: 'nobody',
  },
  { rule: 23, events: ['approve a client after sign out everywhere'], becomes: 'free', at: '/callback' },
  { rule: 23, held: ['weak'], from: 'weak', events: ['sign out everywhere', 'sign out at weak'], becomes: 'nobody' },
  { rule: 24, from: 'password', events: ['suspension'], becomes: 'nobody' },
  { rule: 24, from: 'password', events: ['suspension', 'password'], becomes: 'nobody', log: 'sign_in_failed' },
  { rule: 24, held: ['passkey'], events: ['suspension', 'passkey'], becomes: 'nobody', log: 'passkey_refused' },
  { rule: 24, held: ['strong'], events: ['suspension', 'strong'], becomes: 'nobody', log: 'sign_in_refused' },
  { rule: 24, from: 'password', events: ['suspension', 'end of the suspension'], becomes: 'free' },
  { rule: 24, from: 'password', events: ['idle'], becomes: 'nobody' },
  { rule: 24, held: ['passkey'], from: 'passkey', events: ['too old'], becomes: 'nobody' },
  { rule: 25, from: 'password', events: ['get a role'], becomes: 'warned' },
  { rule: 25, from: 'password', events: ['get a role', 'end of the grace period'], becomes: 'must add' },
  {
    rule: 25,
    held: ['passkey'],
    from: 'password',
    events: ['get a role', 'end of the grace period'],
    becomes: 'must use',
  },
  { rule: 25, held: ['weak'], from: 'weak', events: ['get a role', 'end of the grace period'], becomes: 'must add' },
  { rule: 25, held: ['strong'], from: 'strong', events: ['get a role', 'end of the grace period'], becomes: 'free' },
];

/** Pairs of first methods that two browsers with the password add at the same moment; one is stored. */
export const AT_ONCE: readonly (readonly ('passkey' | 'strong')[])[] = [
  ['passkey', 'passkey'],
  ['passkey', 'strong'],
  ['strong', 'passkey'],
  ['passkey', 'passkey', 'passkey', 'passkey'],
];

/** Events after which a cookie that was copied before is worthless, even with an older Redis. */
export const ENDS_OF_A_COOKIE: readonly Event[] = [
  'confirm by password',
  'confirm by passkey',
  'password for a client',
  'sign out here',
  'sign out elsewhere',
  'sign out everywhere',
  'sign out everywhere in another browser',
  'sign out at weak',
  'use invitation in another browser',
];
