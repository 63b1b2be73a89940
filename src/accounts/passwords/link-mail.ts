/** Mails one-time links for setting a password, and handles “Forgot password?” in the background. */
import type { AttemptLimit } from '../../base/attempt-limits.ts';
import type { Account } from '../account.ts';
import type { AccountRegistry } from '../account-registry.ts';
import type { Origin } from '../activity/activity.ts';
import { type BackgroundMail, hasMailbox, type Message, type SendMail } from '../mail/mail.ts';
import type { LinkPurpose, PasswordLinks } from './links.ts';

export type PasswordLinkRequests = ReturnType<typeof createPasswordLinkRequests>;

export function createPasswordLinkRequests(parts: {
  readonly issuer: string;
  readonly accounts: AccountRegistry;
  readonly links: PasswordLinks;
  readonly sendMail: SendMail;
  /** Limits the mailed links per account, so that attackers cannot fill a user's mailbox. */
  readonly perAccount: AttemptLimit;
  readonly background: BackgroundMail;
}) {
  const { issuer, accounts, links, sendMail, perAccount, background } = parts;

  async function sendLink(email: string, origin: Origin): Promise<boolean> {
    const account = await accounts.findByEmail(email);
    if (!account || account.isSuspended || !hasMailbox(account)) return false;
    // Count only known addresses: unknown ones get no mail.
    if (await perAccount.count(account.id)) return false;
    const purpose = 'forgotten';
    const { token, expiresAt } = await links.make(account, purpose, origin);
    const url = passwordLinkUrl(issuer, token);
    const link = { url, purpose, expiresAt, setsPassword: true } as const;
    await sendMail(passwordMail(account, link, issuer));
    return true;
  }

  return {
    /** Works in the background, so that only a mail, and not the response, shows the outcome. */
    begin(email: string, origin: Origin): void {
      background.begin('a link to set a password', () => sendLink(email, origin));
    },
  };
}

/** `confirmed` links are not mailed: a browser is redirected to them right after its confirmation. */
type MailedPurpose = Exclude<LinkPurpose, 'confirmed'>;

export interface PasswordLink {
  readonly url: string;
  readonly purpose: MailedPurpose;
  readonly expiresAt: Date;
  /** False if the service has no passwords: the link signs the user in. */
  readonly setsPassword: boolean;
}

export const passwordLinkPath = (token: string): string => `/password?token=${token}`;

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
