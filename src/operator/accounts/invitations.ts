/** How a new person gets their first password: a one-time link, printed, and mailed where mail is. */
import type { Account } from '../../accounts/account.ts';
import { passwordLinkUrl, passwordMail } from '../../accounts/passwords/mail.ts';
import { Refusal } from '../../refusal.ts';
import type { Registries } from '../registries.ts';

type Parts = Pick<Registries, 'settings' | 'passwordLinks'>;

/** @throws Refusal `passwords_off` where nobody signs in with one. */
export function requirePasswords({ settings: { signIn } }: Parts): void {
  if (signIn.passwords) return;
  throw new Refusal(
    'passwords_off',
    'Nobody signs in with a password here (sign_in.passwords: false).',
    'People come from the sign_in.providers; `accounts links` shows who is linked.',
  );
}

/**
 * Makes a link for the account, and reports it. Sets nothing: the person does, with the link.
 *
 * @throws Refusal `passwords_off`
 */
export async function invite(parts: Parts, account: Account) {
  requirePasswords(parts);
  const { issuer, mail } = parts.settings;
  const purpose = 'invitation';
  const { token, expiresAt } = await parts.passwordLinks.make(account, purpose, 'operator');
  const url = passwordLinkUrl(issuer, token);
  // The link is good whether the mail arrives or not, and is printed either way.
  const failure = await send().catch((error: Error) => error.message);
  const isMailed = mail !== undefined && failure === undefined;
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

  async function send(): Promise<undefined> {
    if (!mail) return;
    // Here, for the mail client is a sixth of the start of a command.
    const { createSendMail } = await import('../../accounts/mail/mail.ts');
    await createSendMail(mail)(passwordMail(account, { url, purpose, expiresAt }, issuer));
  }
}
