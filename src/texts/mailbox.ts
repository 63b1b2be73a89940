/** Checks new email addresses: a dot-string and a domain (RFC 5321 §4.1.2). */
import { domainToASCII, domainToUnicode } from 'node:url';

/** RFC 5321 §4.5.3.1.3: the path with its two brackets has at most 256 octets. */
export const MAX_ADDRESS_BYTES = 254;
/** RFC 5321 §4.5.3.1.1: the part before the `@`. */
const MAX_LOCAL_PART_BYTES = 64;

/** Atoms joined by dots: no quotes, comments, brackets or spaces. RFC 6531 §3.3 allows non-ASCII. */
const DOT_STRING = /^[\w!#$%&'*+/=?^`{|}~\P{ASCII}-]+(?:\.[\w!#$%&'*+/=?^`{|}~\P{ASCII}-]+)*$/u;
const INVISIBLE = /[\s\p{C}]/u;
/** Letters, digits and inner hyphens. A last label of digits would mean an IPv4 address. */
const DOMAIN = /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)*(?!\d+$)[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

/** True for `ada@example.com`; false for addresses with quotes, a comment, a port or an IP address. */
export function isMailbox(address: string): boolean {
  const at = address.lastIndexOf('@');
  const [local, domain] = [address.slice(0, Math.max(0, at)), address.slice(at + 1)];
  if (Buffer.byteLength(address) > MAX_ADDRESS_BYTES) return false;
  if (Buffer.byteLength(local) > MAX_LOCAL_PART_BYTES) return false;
  return DOT_STRING.test(local) && !INVISIBLE.test(local) && isDomain(domain);
}

/** `domainToASCII` corrects spellings and reads numbers as IPv4 addresses, so the result must equal the input. */
function isDomain(domain: string): boolean {
  const ascii = domainToASCII(domain);
  const spelled = domain.toLowerCase();
  return DOMAIN.test(ascii) && (ascii === spelled || domainToUnicode(ascii) === spelled);
}

/** Returns the address with its domain in Unicode if it was given like `xn--bcher-kva.example`; else undefined. */
export function inOwnScript(address: string): string | undefined {
  const at = address.lastIndexOf('@') + 1;
  const domain = address.slice(at).toLowerCase();
  const unicode = /(?:^|\.)xn--/.test(domain) ? domainToUnicode(domain) : '';
  return unicode === '' || unicode === domain ? undefined : address.slice(0, at) + unicode;
}

export interface Sender {
  readonly name: string;
  readonly address: string;
}

/** Reads an address, or a name and an address in angle brackets; undefined for anything else. */
export function parseSender(text: string): Sender | undefined {
  const [, name = '', bracketed] = /^([^\p{C}<>]+) <([^<>]+)>$/u.exec(text) ?? [];
  const address = bracketed ?? text;
  return isMailbox(address) ? { name, address } : undefined;
}

/** Returns the URL of a contact. @param contact an email address or a URL */
export const contactUrl = (contact: string): string =>
  URL.canParse(contact) ? contact : `mailto:${encodeURIComponent(contact).replace('%40', '@')}`;
