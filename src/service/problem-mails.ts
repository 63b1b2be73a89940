/** Mails owners about new problems of their clients, at most once a day. */
import type { Logger } from 'pino';
import type { AccountMail } from '../accounts/mail/account-mail.ts';
import type { AttemptLimit } from '../base/attempt-limits.ts';
import { message } from '../base/message.ts';
import type { ClientRequests, MailedOwner } from '../clients/client-requests.ts';

/** @param perOwner allows one mail a day for each owner and kind of request, on all nodes together */
export function createProblemMails(parts: {
  readonly requests: Pick<ClientRequests, 'groups'>;
  readonly mail: () => Pick<AccountMail, 'reportProblems'> | undefined;
  readonly perOwner: AttemptLimit;
  readonly log: Pick<Logger, 'warn'>;
}) {
  const { requests, mail, perOwner, log } = parts;
  let mailing: Promise<unknown> = Promise.resolve();

  async function mailOwner({ id: ownerId, step }: MailedOwner): Promise<void> {
    const open = (await requests.groups(undefined, ownerId)).filter(({ isMailed, isMended }) => isMailed && !isMended);
    if (open.length === 0 || !mail()) return;
    // Any caller can send authorization requests, so problems with these have their own limit of one mail a day.
    const key = `${ownerId} ${step}`;
    if (await perOwner.count(key)) return;
    // Mail the error but not its cause, because a caller may have chosen words in the cause.
    const items = open.map(({ clientId, clientName: client, error }) => {
      return [clientId + error, message('mail.client_problem-item', { client, error })] as const;
    });
    const [one, ...others] = new Set(open.map(({ clientId }) => clientId));
    const path = `/profile/oauth-clients${others.length > 0 ? '' : `/${one}/problems`}`;
    const isSent = await mail()?.reportProblems(ownerId, { items: [...new Map(items).values()], path });
    // Do not count a mail that failed. The mail about the next problem also contains the problems of this mail.
    if (isSent === false) await perOwner.refund(key);
  }

  /** Sends one mail after another, because many at once would displace other mails. */
  return (owners: readonly MailedOwner[]): void => {
    for (const owner of owners) {
      mailing = mailing
        .then(() => mailOwner(owner))
        .catch((err) => log.warn({ err, owner }, 'an owner got no mail about a new problem'));
    }
  };
}
