/** The mail that brings a person the link to set a password. */
import type { Account } from '../account.ts';
import type { Message } from '../mail/mail.ts';
import type { LinkPurpose } from './links.ts';

/** Of who has just confirmed that it is them nothing is mailed: the browser is led on. */
type MailedPurpose = Exclude<LinkPurpose, 'confirmed'>;

export interface PasswordLink {
  readonly url: string;
  readonly purpose: MailedPurpose;
  readonly expiresAt: Date;
  /** False where there are no passwords: the link signs in. */
  readonly setsPassword: boolean;
}

export const passwordLinkPath = (token: string): string => `/password?token=${token}`;

/** The address that a link's token is good at. */
export const passwordLinkUrl = (issuer: string, token: string): string =>
  issuer + passwordLinkPath(token);

export function passwordMail(
  { name, email }: Account,
  { url, purpose, expiresAt, setsPassword }: PasswordLink,
  issuer: string,
): Message {
  const [subject, reason, otherwise] = TEXTS[setsPassword ? purpose : 'sign_in'];
  const until = `${expiresAt.toISOString().slice(0, 16).replace('T', ' ')} UTC`;
  return {
    to: { name, address: email },
    subject,
    text: [
      `Hello ${name},`,
      `${reason} at ${issuer} (${email}).`,
      `${setsPassword ? 'Choose your password' : 'Sign in'} here:\n${url}`,
      `The link works once, until ${until}. Give it to nobody.`,
      otherwise,
    ].join('\n\n'),
  };
}

const TEXTS: Readonly<Record<MailedPurpose | 'sign_in', readonly [string, string, string]>> = {
  sign_in: [
    'Sign in to Gatehouse',
    'whoever runs the service has made you a link to sign in to your account',
    'Add a way to sign in then, on the security page. If you do not expect this, tell whoever runs your warehouses.',
  ],
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
