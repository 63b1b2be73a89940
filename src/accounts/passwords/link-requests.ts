/** What follows “Forgot password?”, beside the request: a link is made and mailed, or nothing is. */
import type { AttemptLimit } from '../../attempt-limits.ts';
import type { AccountRegistry } from '../account-registry.ts';
import type { Origin } from '../activity/activity.ts';
import type { SendMail } from '../mail/mail.ts';
import type { MailBeside } from '../mail/mail-beside.ts';
import type { PasswordLinks } from './links.ts';
import { passwordLinkUrl, passwordMail } from './mail.ts';

export interface PasswordLinkRequests {
  /** Returns at once. What becomes of it is seen by nobody but the person the mail reaches. */
  begin(email: string, origin: Origin): void;
}

export function createPasswordLinkRequests(parts: {
  readonly issuer: string;
  readonly accounts: AccountRegistry;
  readonly links: PasswordLinks;
  readonly sendMail: SendMail;
  /** Links per account: nobody can fill somebody's mailbox. */
  readonly perAccount: AttemptLimit;
  readonly beside: MailBeside;
}): PasswordLinkRequests {
  const { issuer, accounts, links, sendMail, perAccount, beside } = parts;

  async function sendLink(email: string, origin: Origin): Promise<boolean> {
    const account = await accounts.findByEmail(email);
    if (!account || account.isSuspended) return false;
    // Of known addresses only: for any other nothing is sent, so there is nothing to count.
    if (await perAccount.count(account.id)) return false;
    const purpose = 'forgotten';
    const { token, expiresAt } = await links.make(account, purpose, origin);
    const url = passwordLinkUrl(issuer, token);
    const link = { url, purpose, expiresAt, setsPassword: true } as const;
    await sendMail(passwordMail(account, link, issuer));
    return true;
  }

  return {
    begin: (email, origin) =>
      beside.begin('a link to set a password', () => sendLink(email, origin)),
  };
}
