/** Mails owners about new problems and new networks of their clients, each at most once a day. */
import type { Logger } from 'pino';
import type { AccountMail } from '../accounts/mail/account-mail.ts';
import type { AttemptLimit } from '../base/attempt-limits.ts';
import type { Clock } from '../base/clock.ts';
import { message } from '../base/message.ts';
import type { Client } from '../clients/client.ts';
import type { ClientNetworks } from '../clients/client-networks.ts';
import type { ClientRegistry } from '../clients/client-registry.ts';
import type { ClientRequests, MailedOwner } from '../clients/client-requests.ts';

/** @param perOwner allows one mail a day for each key, counted across all nodes */
export function createProblemMails(parts: {
  readonly requests: Pick<ClientRequests, 'groups'>;
  readonly networks: Pick<ClientNetworks, 'list'>;
  readonly clients: Pick<ClientRegistry, 'find'>;
  readonly clock: Clock;
  readonly mail: () => Pick<AccountMail, 'reportProblems' | 'reportNetworks'> | undefined;
  readonly perOwner: AttemptLimit;
  readonly log: Pick<Logger, 'warn'>;
}) {
  const { requests, networks, clients, clock, mail, perOwner, log } = parts;
  let mailing: Promise<unknown> = Promise.resolve();
  /** Clients with a new network after the mail of the day, with the time of the next mail; lost at a restart. */
  const delayed = new Map<string, number>();

  async function mailOwner({ id: ownerId, step }: MailedOwner): Promise<void> {
    const open = (await requests.groups(undefined, ownerId)).filter(({ isMailed, isMended }) => isMailed && !isMended);
    if (open.length === 0 || !mail()) return;
    // Any caller can send an authorization request: these have a mail of the day of their own.
    if (await perOwner.count(`${ownerId} ${step}`)) return;
    // Use our own words for each error: a caller may have chosen the words of a cause.
    const items = open.map(({ clientId, clientName: client, error }) => {
      return [clientId + error, message('mail.client_problem-item', { client, error })] as const;
    });
    const [one, ...others] = new Set(open.map(({ clientId }) => clientId));
    const path = `/profile/oauth-clients${others.length > 0 ? '' : `/${one}/problems`}`;
    await mail()?.reportProblems(ownerId, { items: [...new Map(items).values()], path });
  }

  /** Names all new networks: those that came after the mail of a day, or whose mail failed, were in no other mail. */
  async function mailNetworks(client: Client, isDelayed = false): Promise<void> {
    const { id, name, ownerAccountId, mailsNetworks } = client;
    if (!mailsNetworks || ownerAccountId === undefined || !mail()) return;
    const found = (await networks.list(client)).filter(({ isNew }) => isNew).map(({ network }) => network);
    const key = `${ownerAccountId} network ${id}`;
    if (found.length === 0) return;
    const over = await perOwner.count(key);
    // A mail that was delayed and is refused again was sent by another node.
    if (over && !isDelayed) delayed.set(id, clock() + over.seconds * 1_000);
    if (over) return;
    delayed.delete(id);
    const path = `/profile/oauth-clients/${id}/secrets`;
    const isSent = await mail()?.reportNetworks(ownerAccountId, { name, networks: found, path });
    if (isSent === false) await perOwner.refund(key);
  }

  /** Sends one mail after another: many at once would exceed the maximum for other mails. */
  function enqueue(owner: unknown, send: () => Promise<void>): Promise<unknown> {
    mailing = mailing
      .then(send)
      .catch((err) => log.warn({ err, owner }, 'an owner got no mail about a new problem or network'));
    return mailing;
  }

  return {
    reportProblems(owners: readonly MailedOwner[]): void {
      for (const owner of owners) void enqueue(owner, () => mailOwner(owner));
    },
    /** Never rejects. */
    reportNetworks: (client: Client): Promise<unknown> =>
      enqueue({ id: client.ownerAccountId }, () => mailNetworks(client)),
    /** Begins the mails that are due about networks which came after the mail of a day. */
    async sendDelayed(): Promise<number> {
      const due = [...delayed].filter(([, at]) => at <= clock());
      for (const [id] of due) {
        const client = await clients.find(id);
        delayed.delete(id);
        if (client) void enqueue({ id: client.ownerAccountId }, () => mailNetworks(client, true));
      }
      return due.length;
    },
  };
}
