/** One-time links for new users and those who lost access: printed, and mailed if configured. */
import type { Account } from '../../accounts/account.ts';
import { passwordLinkUrl, passwordMail } from '../../accounts/password-links/link-mail.ts';
import type { Registries } from '../registries.ts';
import { tryMail } from './mailing.ts';

type Parts = Pick<Registries, 'settings' | 'passwordLinks'>;

/** Makes a link and reports it. The account changes only when the user uses the link. */
export async function invite(parts: Parts, account: Account) {
  const { issuer, signIn } = parts.settings;
  const { passwords: setsPassword } = signIn;
  const purpose = 'invitation';
  const { token, expiresAt } = await parts.passwordLinks.make(account, purpose, 'operator');
  const url = passwordLinkUrl(issuer, token);
  // The link is valid whether or not the mail arrives, and is printed either way.
  const message = passwordMail(account, { url, purpose, expiresAt, setsPassword }, issuer);
  const { isMailed, failure } = await tryMail(parts, message);
  return {
    value: {
      invite_link: url,
      expires_at: expiresAt,
      mailed: isMailed,
      ...(failure !== undefined && { mail_failure: failure }),
    },
    text: [
      `One-time link to ${setsPassword ? 'set the password' : 'sign in'}, valid until ${expiresAt.toISOString()}:`,
      url,
      ...(isMailed ? [`The link was also mailed to ${account.email}.`] : []),
      ...(failure === undefined ? [] : [`The link could not be mailed: ${failure}`]),
    ].join('\n'),
    secret: url,
  };
}
