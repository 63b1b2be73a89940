/** What each kind of value looks like: a prefix that secret scanners recognize, then random text. */

/** One prefix per kind; what follows is of `[A-Za-z0-9_-]`, at least 256 random bits. */
export const PREFIX = {
  accessToken: 'gate_at_',
  machineToken: 'gate_mt_',
  refreshToken: 'gate_rt_',
  code: 'gate_ac_',
} as const;

export type TokenKind = keyof typeof PREFIX;

/** 43 characters of 6 bits are 258 random bits. */
const RANDOM = /^[A-Za-z0-9_-]{43}$/;

/**
 * Which kind of value this is, from its looks alone: a foreign one costs no query. Refresh tokens
 * are told by their prefix only, their MAC is checked where they are read.
 */
export function kindOf(value: string): TokenKind | undefined {
  for (const kind of Object.keys(PREFIX) as TokenKind[]) {
    const prefix = PREFIX[kind];
    if (!value.startsWith(prefix)) continue;
    return kind === 'refreshToken' || RANDOM.test(value.slice(prefix.length)) ? kind : undefined;
  }
  return undefined;
}
