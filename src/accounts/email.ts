/** Which email addresses accounts can have, and when two of them are equal. */
import { sha256 } from '../base/random-id.ts';
import { inOwnScript, isMailbox, MAX_ADDRESS_BYTES } from '../texts/mailbox.ts';

/** Requires one @ and a dot in the domain, and nothing invisible. New addresses must also pass `newEmailProblem`. */
const EMAIL = /^[^\s@\p{C}]+@[^\s@\p{C}.]+(?:\.[^\s@\p{C}.]+)+$/u;

/** Returns the address to store, show and send mail to; undefined if invalid. */
export function normalizeEmail(entered: string): string | undefined {
  const email = entered.normalize('NFC').trim();
  return Buffer.byteLength(email) <= MAX_ADDRESS_BYTES && EMAIL.test(email) ? email : undefined;
}

/**
 * Returns the same key for all equal spellings of an address, so that attempts with different spellings are limited
 * together. A text that is no address gets a key that no account has and that PostgreSQL accepts.
 */
export function emailKey(entered: string): string {
  const email = normalizeEmail(entered);
  return email === undefined ? `no address ${sha256(entered)}` : folded(email);
}

/** Returns undefined if an account may use this normalized address. `other` is a suggested correction, if any. */
export function newEmailProblem(email: string): { readonly other?: string } | undefined {
  const other = otherEmailMeant(email) ?? inOwnScript(email);
  if (other !== undefined) return { other };
  return isMailbox(email) ? undefined : {};
}

/**
 * True if a provider's address is an account's address. Only ASCII letter case may differ. Do not normalize the
 * addresses: NFC turns the Kelvin sign into a K, but these may be two mailboxes.
 */
export function isSameMailbox(kept: string, claimed: string): boolean {
  return inAsciiLowerCase(kept) === inAsciiLowerCase(claimed);
}

const inAsciiLowerCase = (text: string): string => text.replace(/[A-Z]/g, (letter) => letter.toLowerCase());

/**
 * Returns the normalized spelling of `email` if it differs in more than letter case. Accounts get only the normalized
 * spelling: the two spellings mean the same account, but mail to them may reach two mailboxes.
 */
export function otherEmailMeant(email: string): string | undefined {
  const key = folded(email);
  return key === lowered(email) ? undefined : key;
}

/**
 * Folds compatibility forms (UAX #15, NFKC), letter case and ignorable characters. Is slightly coarser than
 * NFKC_Casefold (UAX #44), which UTS #46 uses for domains: dotted capital I and dotless i become an i here, because
 * databases, languages and keyboards disagree about the case of these letters. The result is the same in newer Unicode
 * versions: folding never changes for assigned characters, and addresses have no unassigned ones.
 */
function folded(email: string): string {
  const compatible = email.normalize('NFKD').replace(/\p{Default_Ignorable_Code_Point}/gu, '');
  // Convert to lower case first, because the capital sharp s is its own upper case.
  const caseless = compatible.toLowerCase().toUpperCase().normalize('NFKD');
  return lowered(caseless).replaceAll('i\u0307', 'i').normalize('NFKC');
}

/** Converts to lower case, and replaces each final sigma with the ordinary sigma. */
const lowered = (text: string): string => text.toLowerCase().replaceAll('ς', 'σ');
