/** Mail of a command: what came of it is reported, and nothing else depends on it. */
import type { Message } from '../../accounts/mail/mail.ts';
import type { Registries } from '../registries.ts';

/** Nothing is sent where no mail is configured. */
export async function mailed(
  { settings: { mail } }: Pick<Registries, 'settings'>,
  message: Message,
) {
  const failure = await send().catch((error: Error) => error.message);
  return {
    isMailed: mail !== undefined && failure === undefined,
    /** Why it was not taken, where it was not. */
    failure,
  };

  async function send(): Promise<undefined> {
    if (!mail) return;
    // Here, for the mail client is a sixth of the start of a command.
    const { createSendMail } = await import('../../accounts/mail/mail.ts');
    await createSendMail(mail)(message);
  }
}
