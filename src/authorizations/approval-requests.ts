/** Mails owners and admins of an organization that a client waits for an approval. */
import type { Access } from '../accounts/access/access.ts';
import { type AccessLimit, limitAccess } from '../accounts/access/access-limit.ts';
import type { People } from '../accounts/access/people.ts';
import type { AccountMail } from '../accounts/mail/account-mail.ts';
import type { AttemptLimit } from '../base/attempt-limits.ts';
import type { Clock } from '../base/clock.ts';
import { expiryJob } from '../storage/cleaning.ts';
import type { Queries } from '../storage/queries.ts';
import { isAway } from '../storage/storage-unavailable.ts';

export interface ConnectedNow {
  readonly accountId: string;
  readonly client: { readonly id: string; readonly name: string };
  readonly limit: AccessLimit | undefined;
}

interface About {
  readonly organizationId: string;
  readonly organizationName: string;
  readonly clientId: string;
  readonly clientName: string;
}

const DAY_MS = 86_400_000;
/** A mail that one node is about to send is due again after this time: that node may have stopped. */
const RETRY_MS = 600_000;

/** Returns a job that forgets which mails were sent; a mail that is due longer than a week, too. */
export const approvalMailsExpiry = (parts: { database: Queries; clock: Clock }) =>
  expiryJob(parts, [{ table: 'approval_mails', column: 'mail_at' }], 7 * DAY_MS);

/** @param perOrganization allows one mail an hour about requests, counted across all nodes */
export function createApprovalRequests(parts: {
  readonly database: Queries;
  readonly clock: Clock;
  readonly people: Pick<People, 'find'>;
  readonly access: Pick<Access, 'clientBlocks'>;
  readonly mail: Pick<AccountMail, 'requestApproval'>;
  readonly perOrganization: AttemptLimit;
}) {
  const { database, clock, people, access, mail, perOrganization } = parts;

  /**
   * Mails the owners and admins, unless another node does.
   *
   * @param isDue true for a mail that `announceDue` claimed; otherwise no mail may have been sent
   *   within a day
   * @returns false if nothing was mailed
   */
  async function mailAdmins(about: About, { isDue, personName }: { isDue: boolean; personName?: string }) {
    const { organizationId, clientId, organizationName, clientName } = about;
    const admins = await adminsOf(database, organizationId);
    const isTaken = await takeMail(organizationId, clientId, isDue);
    if (!isTaken) return false;
    const path = `/profile/organizations/${organizationId}`;
    for (const id of admins) mail.requestApproval(id, { clientName, personName, organizationName, path });
    return true;
  }

  async function takeMail(organizationId: string, clientId: string, isDue: boolean): Promise<boolean> {
    const taken = await database.query(
      `INSERT INTO approval_mails AS sent (organization_id, client_id, mail_at, is_due)
        VALUES ($1, $2, $4, false)
        ON CONFLICT (organization_id, client_id) DO UPDATE
          SET mail_at = excluded.mail_at, is_due = false
          WHERE CASE WHEN $5 THEN sent.is_due ELSE sent.mail_at <= $3 END
        RETURNING 1`,
      [organizationId, clientId, new Date(clock()), new Date(clock() + DAY_MS), isDue],
    );
    return taken.length > 0;
  }

  return {
    async announce({ accountId, client, limit }: ConnectedNow): Promise<void> {
      const person = await people.find(accountId);
      if (!person || person.policies.size === 0) return;
      const all = person.organizations;
      const reached = limit ? limitAccess(all, limit) : all;
      const ids = reached.map(({ id }) => id);
      const excluded = (await access.clientBlocks.exclusions(ids, [client.id])).get(client.id);
      for (const { organizationId, why } of excluded ?? []) {
        if (why !== 'waiting' || (await perOrganization.count(organizationId))) continue;
        const organizationName = all.find(({ id }) => id === organizationId)?.name ?? '';
        const about = { organizationId, organizationName, clientId: client.id, clientName: client.name };
        const isMailed = await mailAdmins(about, { isDue: false, personName: person.account.name });
        if (!isMailed) await perOrganization.refund(organizationId);
      }
    },

    /**
     * Mails about at most `limit` approvals that ended because the client changed, if the client
     * still waits. Continues after a failed mail, which is due again after `RETRY_MS`.
     *
     * @returns how many mails were due
     * @throws the first error
     */
    async announceDue(limit: number): Promise<number> {
      const due = await database.query<About>(
        `WITH claimed AS (
            UPDATE approval_mails a SET mail_at = $2,
                -- The page lists only clients that a member has connected, and a deleted organization has none.
                is_due = EXISTS (SELECT FROM member_connections m JOIN organizations o ON o.id = m.organization_id
                  WHERE o.id = a.organization_id AND o.ended_at IS NULL AND m.client_id = a.client_id)
              WHERE ctid = ANY (ARRAY(
                SELECT ctid FROM approval_mails
                  WHERE is_due AND mail_at <= $1 ORDER BY mail_at LIMIT $3 FOR UPDATE SKIP LOCKED))
              RETURNING *)
          SELECT o.id AS "organizationId", o.name AS "organizationName",
              c.id AS "clientId", c.name AS "clientName"
            FROM claimed JOIN organizations o ON o.id = organization_id
              JOIN clients c ON c.id = client_id WHERE is_due`,
        [new Date(clock()), new Date(clock() + RETRY_MS), limit],
      );
      const errors: unknown[] = [];
      for (const about of due) {
        await mailIfWaiting(about).catch((error: unknown) => {
          // The others would wait for the same database, one after the other.
          if (isAway(error)) throw error;
          errors.push(error);
        });
      }
      if (errors.length > 0) throw errors[0];
      return due.length;
    },
  };

  async function mailIfWaiting(about: About): Promise<void> {
    const { organizationId, clientId } = about;
    const excluded = await access.clientBlocks.exclusions([organizationId], [clientId]);
    const isWaiting = excluded.get(clientId)?.some(({ why }) => why === 'waiting');
    if (isWaiting) await mailAdmins(about, { isDue: true });
    else await takeMail(organizationId, clientId, true);
  }
}

/** Returns the account ids of the organization's owners and admins who are not suspended. */
async function adminsOf(queries: Queries, organizationId: string): Promise<string[]> {
  const rows = await queries.query<{ id: string }>(
    `SELECT a.id FROM organization_memberships m JOIN accounts a ON a.id = m.account_id
      WHERE m.organization_id = $1 AND m.role IN ('owner', 'admin') AND a.suspended_at IS NULL`,
    [organizationId],
  );
  return rows.map(({ id }) => id);
}
