/** Mails one-time links for setting a password, and handles “Forgot password?” in the background. */
import type { AttemptLimit } from '../../base/attempt-limits.ts';
import { message } from '../../base/message.ts';
import type { AccountRegistry } from '../account-registry.ts';
import type { Origin } from '../activity/activity.ts';
import { type Letter, letter } from '../mail/letter.ts';
import { type BackgroundMail, hasMailbox, type SendMail } from '../mail/mail.ts';
import type { LinkPurpose, PasswordLinks } from './password-links.ts';

/** Maximum number of links that are mailed to one account in an hour. */
export const MAX_LINKS_AN_HOUR = 3;

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
    // Count only known addresses, because unknown ones get no mail.
    if (await perAccount.count(account.id)) return false;
    const purpose = 'forgotten';
    const { token, expiresAt } = await links.make(account, purpose, origin);
    const url = passwordLinkUrl(issuer, token);
    const link = { url, purpose, expiresAt, setsPassword: true } as const;
    await sendMail(passwordMail(account, link, issuer));
    return true;
  }

  return {
    /** Works in the background, so that the response does not reveal whether a mail is sent. */
    begin(email: string, origin: Origin): void {
      background.begin('a link to set a password', () => sendLink(email, origin), 'anyone');
    },
  };
}

export interface PasswordLink {
  readonly url: string;
  /** Links with the purpose `confirmed` are not mailed, because the browser is redirected to them immediately. */
  readonly purpose: Exclude<LinkPurpose, 'confirmed'>;
  readonly expiresAt: Date;
  /** False in a service without passwords, in which this link signs the user in. */
  readonly setsPassword: boolean;
}

export const passwordLinkPath = (token: string): string => `/password?token=${token}`;

export const passwordLinkUrl = (issuer: string, token: string): string => issuer + passwordLinkPath(token);

export function passwordMail(
  to: Letter['to'],
  { url, purpose, expiresAt, setsPassword }: PasswordLink,
  issuer: string,
): Letter {
  const kind = setsPassword ? purpose : 'sign_in';
  return letter(
    to,
    message(`link-mail.${kind}-subject`),
    message(`link-mail.${kind}`, { issuer, email: to.email }),
    { button: message(setsPassword ? 'link-mail.choose' : 'link-mail.sign-in'), url },
    message('link-mail.until', { until: { iso: expiresAt.toISOString() } }),
    message(`link-mail.${kind}-otherwise`),
  );
}
