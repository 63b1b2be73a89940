/** Sends the mail of a command, such as a one-time link. A mail that cannot be sent does not make the command fail. */
import type { Account } from '../../accounts/account.ts';
import type { Letter } from '../../accounts/mail/letter.ts';
import { passwordLinkUrl, passwordMail } from '../../accounts/password-links/link-mail.ts';
import type { Registries } from '../registries.ts';

export async function tryMail({ settings: { mail, brand } }: Pick<Registries, 'settings'>, letter: Letter) {
  const failure = await send().catch((error: Error) => error.message);
  const isMailed = mail !== undefined && failure === undefined;
  return {
    isMailed,
    /** Why the mail server did not accept the mail; undefined if it did, or if no mail server is configured. */
    failure,
    value: { mailed: isMailed, ...(failure !== undefined && { mail_failure: failure }) },
  };

  async function send(): Promise<undefined> {
    if (!mail) return;
    // Import the mail client only if needed: loading it takes a sixth of the start time of a command.
    const { createSendMail } = await import('../../accounts/mail/mail.ts');
    await createSendMail(mail, brand)(letter);
  }
}

/** Makes a one-time link for a new user or a user who lost access. The account changes only when the link is used. */
export async function invite(parts: Pick<Registries, 'settings' | 'passwordLinks'>, account: Account) {
  const { issuer, signIn } = parts.settings;
  const { passwords: setsPassword } = signIn;
  const purpose = 'invitation';
  const { token, expiresAt } = await parts.passwordLinks.make(account, purpose, 'operator');
  const url = passwordLinkUrl(issuer, token);
  // If the mail cannot be sent, the link is valid nevertheless, and printed.
  const message = passwordMail(account, { url, purpose, expiresAt, setsPassword }, issuer);
  const { isMailed, failure, value } = await tryMail(parts, message);
  return {
    value: { invite_link: url, expires_at: expiresAt, ...value },
    text: [
      `One-time link to ${setsPassword ? 'set the password' : 'sign in'}, valid until ${expiresAt.toISOString()}:`,
      url,
      ...(isMailed ? [`The link was also mailed to ${account.email}.`] : []),
      ...(failure === undefined ? [] : [`The link could not be mailed: ${failure}`]),
    ].join('\n'),
  };
}
