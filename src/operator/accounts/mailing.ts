/** Sends the mail of a command, such as a one-time link; a failure does not fail the command. */
import type { Account } from '../../accounts/account.ts';
import type { Letter } from '../../accounts/mail/letter.ts';
import { passwordLinkUrl, passwordMail } from '../../accounts/password-links/link-mail.ts';
import type { Registries } from '../registries.ts';

/** Sends the mail, if mail is configured. */
export async function tryMail({ settings: { mail, brand } }: Pick<Registries, 'settings'>, letter: Letter) {
  const failure = await send().catch((error: Error) => error.message);
  const isMailed = mail !== undefined && failure === undefined;
  return {
    isMailed,
    /** The reason why the mail was not accepted; undefined if it was accepted, or not sent. */
    failure,
    /** Both facts, for the report of the command. */
    value: { mailed: isMailed, ...(failure !== undefined && { mail_failure: failure }) },
  };

  async function send(): Promise<undefined> {
    if (!mail) return;
    // Import the mail client here: loading it takes a sixth of the start time of a command.
    const { createSendMail } = await import('../../accounts/mail/mail.ts');
    await createSendMail(mail, brand)(letter);
  }
}

/**
 * Makes a one-time link for a new user or one who lost access, and reports it. The account changes only
 * when the user uses the link.
 */
export async function invite(parts: Pick<Registries, 'settings' | 'passwordLinks'>, account: Account) {
  const { issuer, signIn } = parts.settings;
  const { passwords: setsPassword } = signIn;
  const purpose = 'invitation';
  const { token, expiresAt } = await parts.passwordLinks.make(account, purpose, 'operator');
  const url = passwordLinkUrl(issuer, token);
  // The link is valid and printed even if the mail cannot be sent.
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
    secret: url,
  };
}
