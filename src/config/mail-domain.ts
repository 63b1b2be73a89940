/** Domains of email addresses: by which people are led to the provider that they come from. */
import { domainToASCII } from 'node:url';

/** One text for all spellings of a domain (UTS #46), or an empty one when it is none. */
export const mailDomain = (domain: string): string => domainToASCII(domain.normalize('NFKC'));
