/** The mail that brings a person the link to set a password. */
import type { Account } from '../account.ts';
import type { Message } from '../mail/mail.ts';
import type { LinkPurpose } from './links.ts';

export interface PasswordLink {
  readonly url: string;
  readonly purpose: LinkPurpose;
  readonly expiresAt: Date;
}

/** The address that a link's token is good at. */
export const passwordLinkUrl = (issuer: string, token: string): string =>
  `${issuer}/password?token=${token}`;

export function passwordMail(
  { name, email }: Account,
  { url, purpose, expiresAt }: PasswordLink,
  issuer: string,
): Message {
  const [subject, reason, otherwise] = TEXTS[purpose];
  const until = `${expiresAt.toISOString().slice(0, 16).replace('T', ' ')} UTC`;
  return {
    to: { name, address: email },
    subject,
    text: [
      `Hello ${name},`,
      `${reason} at ${issuer} (${email}).`,
      `Choose your password here:\n${url}`,
      `The link works once, until ${until}. Give it to nobody.`,
      otherwise,
    ].join('\n\n'),
  };
}

const TEXTS: Readonly<Record<LinkPurpose, readonly [string, string, string]>> = {
  invitation: [
    'Set your Gatehouse password',
    'an account is waiting for you',
    'If you do not expect this, tell whoever runs your warehouses.',
  ],
  forgotten: [
    'Choose a new Gatehouse password',
    'somebody, probably you, asked for a new password for your account',
    'If it was not you, do nothing: your password stays as it is.',
  ],
};
