/** What counts as an email address, and when two are the same. */

/** RFC 5321 §4.5.3.1.3: the path with its two brackets has at most 256 octets. */
const LONGEST_EMAIL = 254;

/** One @, a dot in the domain, nothing invisible: whether mail arrives only mail can tell. */
const EMAIL = /^[^\s@\p{C}]+@[^\s@\p{C}.]+(?:\.[^\s@\p{C}.]+)+$/u;

/** The spelling that is kept and looked for, or undefined when this is no email address. */
export function normalizeEmail(entered: string): string | undefined {
  const email = entered.normalize('NFC').trim();
  return Buffer.byteLength(email) <= LONGEST_EMAIL && EMAIL.test(email) ? email : undefined;
}
