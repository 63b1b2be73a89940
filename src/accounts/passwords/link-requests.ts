/** What follows “Forgot password?”, beside the request: a link is made and mailed, or nothing is. */
import type { Logger } from 'pino';
import type { AttemptLimit } from '../../attempt-limits.ts';
import type { AccountRegistry } from '../account-registry.ts';
import type { Origin } from '../activity.ts';
import type { SendMail } from '../mail.ts';
import type { PasswordLinks } from './links.ts';
import { passwordLinkUrl, passwordMail } from './mail.ts';

export interface PasswordLinkRequests {
  /** Returns at once. What becomes of it is seen by nobody but the person the mail reaches. */
  begin(email: string, origin: Origin): void;
  /** Resolves when what was begun is done. */
  close(): Promise<void>;
}

/** Told of each mail. */
export interface MailOutcomes {
  mailed(outcome: 'sent' | 'failed' | 'dropped'): void;
}

/** More at the same time are dropped: each holds memory and a connection to the mail server. */
const MOST_AT_ONCE = 100;

export function createPasswordLinkRequests(parts: {
  readonly issuer: string;
  readonly accounts: AccountRegistry;
  readonly links: PasswordLinks;
  readonly sendMail: SendMail;
  /** Links per account: nobody can fill somebody's mailbox. */
  readonly perAccount: AttemptLimit;
  readonly log: Logger;
  readonly outcomes: MailOutcomes;
}): PasswordLinkRequests {
  const { issuer, accounts, links, sendMail, perAccount, log, outcomes } = parts;
  const begun = new Set<Promise<void>>();

  async function sendLink(email: string, origin: Origin): Promise<void> {
    const account = await accounts.findByEmail(email);
    if (!account || account.isSuspended) return;
    // Of known addresses only: for any other nothing is sent, so there is nothing to count.
    if (await perAccount.count(account.id)) return;
    const purpose = 'forgotten';
    const { token, expiresAt } = await links.make(account, purpose, origin);
    const url = passwordLinkUrl(issuer, token);
    await sendMail(passwordMail(account, { url, purpose, expiresAt }, issuer));
    outcomes.mailed('sent');
  }

  return {
    begin(email, origin) {
      if (begun.size >= MOST_AT_ONCE) {
        outcomes.mailed('dropped');
        log.warn('too many requests for new passwords at once: one was dropped');
        return;
      }
      const work = sendLink(email, origin)
        .catch((err: unknown) => {
          outcomes.mailed('failed');
          log.error({ err }, 'a link to set a password was not mailed');
        })
        .finally(() => begun.delete(work));
      begun.add(work);
    },

    async close() {
      await Promise.all(begun);
    },
  };
}
