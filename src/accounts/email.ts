/** What counts as an email address, and when two are the same: decided here for everybody. */
import { sha256 } from '../random-id.ts';

/** RFC 5321 §4.5.3.1.3: the path with its two brackets has at most 256 octets. */
const LONGEST_EMAIL = 254;

/** One @, a dot in the domain, nothing invisible: whether mail arrives only mail can tell. */
const EMAIL = /^[^\s@\p{C}]+@[^\s@\p{C}.]+(?:\.[^\s@\p{C}.]+)+$/u;

/** The spelling that is kept, shown and mailed to, or undefined when this is no email address. */
export function normalizeEmail(entered: string): string | undefined {
  const email = entered.normalize('NFC').trim();
  return Buffer.byteLength(email) <= LONGEST_EMAIL && EMAIL.test(email) ? email : undefined;
}

/**
 * One text for all spellings of an address: what `accounts.email_key` keeps, and what look-ups,
 * limits and turns go by. Whatever finds an account therefore counts as that account.
 *
 * What is no address has a key as well, which no account has and PostgreSQL can be asked for.
 */
export function emailKey(entered: string): string {
  const email = normalizeEmail(entered);
  return email === undefined ? `no address ${sha256(entered)}` : folded(email);
}

/**
 * The address that this one is taken for, where more than letter case tells them apart: mail to the
 * two may reach two people, so no account is made under such a spelling.
 */
export function otherEmailMeant(email: string): string | undefined {
  const key = folded(email);
  return key === lowered(email) ? undefined : key;
}

/**
 * Compatibility forms (UAX #15, NFKC) without letter case and ignorable characters, a little coarser
 * than NFKC_Casefold (UAX #44), which UTS #46 has for domains: the dotted capital I and the dotless i
 * are an i here, for databases, languages and keyboards do not agree on their other case. Stable for
 * all assigned characters, and there are no others in an address: keys outlive newer Unicodes.
 */
function folded(email: string): string {
  const compatible = email.normalize('NFKD').replace(/\p{Default_Ignorable_Code_Point}/gu, '');
  // Lower first: the capital sharp s is its own upper case.
  const caseless = compatible.toLowerCase().toUpperCase().normalize('NFKD');
  return lowered(caseless).replaceAll('i\u0307', 'i').normalize('NFKC');
}

/** The sigma at the end of a word is the same letter. */
const lowered = (text: string): string => text.toLowerCase().replaceAll('ς', 'σ');
