/** Sends the mail of a command and reports the outcome; a failure does not fail the command. */
import type { Letter } from '../../accounts/mail/letter.ts';
import type { Registries } from '../registries.ts';

/** Sends a mail, but nothing if mail is not configured. */
export async function tryMail({ settings: { mail, brand } }: Pick<Registries, 'settings'>, letter: Letter) {
  const failure = await send().catch((error: Error) => error.message);
  return {
    isMailed: mail !== undefined && failure === undefined,
    /** The reason why the mail was not accepted; undefined if it was accepted, or not sent. */
    failure,
  };

  async function send(): Promise<undefined> {
    if (!mail) return;
    // Import the mail client here: loading it takes a sixth of the start time of a command.
    const { createSendMail } = await import('../../accounts/mail/mail.ts');
    await createSendMail(mail, brand)(letter);
  }
}
