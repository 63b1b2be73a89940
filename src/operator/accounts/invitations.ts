/** How a new person gets their first password: a one-time link, printed, and mailed where mail is. */
import type { Account } from '../../accounts/account.ts';
import type { SendMail } from '../../accounts/mail/mail.ts';
import type { PasswordLinks } from '../../accounts/passwords/links.ts';
import { passwordLinkUrl, passwordMail } from '../../accounts/passwords/mail.ts';
import { Refusal } from '../../refusal.ts';
import type { Report } from '../program/report.ts';

export interface Invitations {
  /** @throws Refusal `passwords_off` where nobody signs in with one. */
  requirePasswords(): void;
  /** Makes a link for the account. Sets nothing: the person does, with the link. */
  invite(account: Account): Promise<Report & { readonly value: object }>;
}

export function createInvitations(parts: {
  readonly issuer: string;
  readonly links: PasswordLinks;
  /** Whether people sign in with one. */
  readonly passwords: boolean;
  /** Absent where no mail is sent. */
  readonly sendMail: SendMail | undefined;
}): Invitations {
  const { issuer, links, sendMail, passwords } = parts;

  function requirePasswords(): void {
    if (passwords) return;
    throw new Refusal(
      'passwords_off',
      'Nobody signs in with a password here (sign_in.passwords: false).',
      'People come from the sign_in.providers; `accounts links` shows who is linked.',
    );
  }

  return {
    requirePasswords,

    async invite(account) {
      requirePasswords();
      const purpose = 'invitation';
      const { token, expiresAt } = await links.make(account, purpose, 'operator');
      const url = passwordLinkUrl(issuer, token);
      const mail = passwordMail(account, { url, purpose, expiresAt }, issuer);
      // The link is good whether the mail arrives or not, and is printed either way.
      const failure = await sendMail?.(mail).then(
        () => undefined,
        (error: Error) => error.message,
      );
      const isMailed = sendMail !== undefined && failure === undefined;
      return {
        value: {
          invite_link: url,
          expires_at: expiresAt,
          mailed: isMailed,
          ...(failure !== undefined && { mail_failure: failure }),
        },
        text: [
          `Link to set the password, good once, until ${expiresAt.toISOString()}:`,
          url,
          ...(isMailed ? [`It was mailed to ${account.email} as well.`] : []),
          ...(failure === undefined ? [] : [`It could not be mailed: ${failure}`]),
        ].join('\n'),
      };
    },
  };
}
