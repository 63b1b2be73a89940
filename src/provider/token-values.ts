/** What each kind of value looks like: a prefix that secret scanners recognize, then random text. */

/** One prefix per kind; what follows is of `[A-Za-z0-9_-]`, at least 256 random bits. */
export const PREFIX = {
  accessToken: 'gate_at_',
  machineToken: 'gate_mt_',
  refreshToken: 'gate_rt_',
  code: 'gate_ac_',
} as const;

export type TokenKind = keyof typeof PREFIX;

/**
 * After the prefix: 43 characters of 6 bits are 258 random bits. An access token has the id of its
 * grant before them, so that both are looked up in one round trip. The id is no secret: it opens
 * nothing, and the refresh token beside it has it as well.
 */
const BODY = {
  accessToken: /^[A-Za-z0-9_-]{65}$/,
  machineToken: /^[A-Za-z0-9_-]{43}$/,
  code: /^[A-Za-z0-9_-]{43}$/,
  // Its MAC is checked where it is read.
  refreshToken: /^/,
};

const GRANT_ID_LENGTH = 22;

/**
 * Which kind of value this is, from its looks alone: a foreign one costs no query. Refresh tokens
 * are told by their prefix only.
 */
export function kindOf(value: string): TokenKind | undefined {
  for (const kind of Object.keys(PREFIX) as TokenKind[]) {
    const prefix = PREFIX[kind];
    if (!value.startsWith(prefix)) continue;
    return BODY[kind].test(value.slice(prefix.length)) ? kind : undefined;
  }
  return undefined;
}

/** The grant that an access token, looked at by `kindOf`, says it belongs to. */
export function grantIdIn(accessToken: string): string {
  const start = PREFIX.accessToken.length;
  return accessToken.slice(start, start + GRANT_ID_LENGTH);
}
