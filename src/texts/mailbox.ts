/** Checks new email addresses, which must consist of a dot-string and a domain (RFC 5321 §4.1.2). */
import { domainToASCII, domainToUnicode } from 'node:url';

/** RFC 5321 §4.5.3.1.3: an address together with two brackets has at most 256 bytes. */
export const MAX_ADDRESS_BYTES = 254;
/** RFC 5321 §4.5.3.1.1. */
const MAX_LOCAL_PART_BYTES = 64;

/** Matches atoms that are joined by dots (RFC 5321 §4.1.2), with non-ASCII characters (RFC 6531 §3.3). */
const DOT_STRING = /^[\w!#$%&'*+/=?^`{|}~\P{ASCII}-]+(?:\.[\w!#$%&'*+/=?^`{|}~\P{ASCII}-]+)*$/u;
const INVISIBLE = /[\s\p{C}]/u;
/** Refuses a last label that has only digits, because programs take such a domain for an IPv4 address. */
const DOMAIN = /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)*(?!\d+$)[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

/** False for an address with quotation marks, a comment, a port or an IP address. */
export function isMailbox(address: string): boolean {
  const at = address.lastIndexOf('@');
  const [local, domain] = [address.slice(0, Math.max(0, at)), address.slice(at + 1)];
  if (Buffer.byteLength(address) > MAX_ADDRESS_BYTES) return false;
  if (Buffer.byteLength(local) > MAX_LOCAL_PART_BYTES) return false;
  return DOT_STRING.test(local) && !INVISIBLE.test(local) && isDomain(domain);
}

/** Compares the result of `domainToASCII` with the input, because that function corrects and reinterprets domains. */
function isDomain(domain: string): boolean {
  const ascii = domainToASCII(domain);
  const spelled = domain.toLowerCase();
  return DOMAIN.test(ascii) && (ascii === spelled || domainToUnicode(ascii) === spelled);
}

/** Returns the address with its domain in Unicode; undefined unless the domain is like `xn--bcher-kva.example`. */
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

/** Parses `ada@example.com` or `Ada <ada@example.com>`; returns undefined for anything else. */
export function parseSender(text: string): Sender | undefined {
  const [, name = '', bracketed] = /^([^\p{C}<>]+) <([^<>]+)>$/u.exec(text) ?? [];
  const address = bracketed ?? text;
  return isMailbox(address) ? { name, address } : undefined;
}

/** @param contact an email address or a URL */
export const contactUrl = (contact: string): string =>
  URL.canParse(contact) ? contact : `mailto:${encodeURIComponent(contact).replace('%40', '@')}`;
