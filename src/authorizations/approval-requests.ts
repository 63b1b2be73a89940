/** Mails owners and admins of an organization that a client waits for an approval. */
import type { Access } from '../accounts/access/access.ts';
import { type AccessLimit, limitAccess } from '../accounts/access/access-limit.ts';
import type { People } from '../accounts/access/people.ts';
import type { AccountMail } from '../accounts/mail/account-mail.ts';
import type { AttemptLimit } from '../base/attempt-limits.ts';
import type { Clock } from '../base/clock.ts';
import { expiryJob } from '../storage/cleaning.ts';
import type { Queries } from '../storage/queries.ts';

export interface ConnectedNow {
  readonly accountId: string;
  readonly client: { readonly id: string; readonly name: string };
  readonly limit: AccessLimit | undefined;
}

interface Due {
  readonly organizationId: string;
  readonly organizationName: string;
  readonly clientId: string;
  readonly clientName: string;
}

const DAY_MS = 86_400_000;

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

  /** @returns false if a mail about this organization and client was sent within a day */
  async function takeMailOfDay(organizationId: string, clientId: string): Promise<boolean> {
    const taken = await database.query(
      `INSERT INTO approval_mails AS sent (organization_id, client_id, mail_at, is_due)
        VALUES ($1, $2, $4, false)
        ON CONFLICT (organization_id, client_id) DO UPDATE
          SET mail_at = excluded.mail_at, is_due = false WHERE sent.mail_at <= $3
        RETURNING 1`,
      [organizationId, clientId, new Date(clock()), new Date(clock() + DAY_MS)],
    );
    return taken.length > 0;
  }

  async function mailAdmins(
    { organizationId, organizationName, clientName }: Omit<Due, 'clientId'>,
    personName?: string,
  ): Promise<void> {
    for (const adminId of await adminsOf(database, organizationId)) {
      mail.requestApproval(adminId, {
        clientName,
        personName,
        organizationName,
        path: `/profile/organizations/${organizationId}`,
      });
    }
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
        if (await takeMailOfDay(organizationId, client.id)) {
          const organizationName = all.find(({ id }) => id === organizationId)?.name ?? '';
          const about = { organizationId, organizationName, clientName: client.name };
          await mailAdmins(about, person.account.name);
        } else {
          await perOrganization.refund(organizationId);
        }
      }
    },

    /**
     * Mails about at most `limit` approvals that ended because the client changed, if the client
     * still waits. One statement takes them, so that no other node sends the same mail.
     *
     * @returns how many it took
     */
    async announceDue(limit: number): Promise<number> {
      const due = await database.query<Due>(
        `WITH taken AS (
            UPDATE approval_mails SET mail_at = $2, is_due = false
              WHERE ctid = ANY (ARRAY(
                SELECT ctid FROM approval_mails
                  WHERE is_due AND mail_at <= $1 ORDER BY mail_at LIMIT $3 FOR UPDATE SKIP LOCKED))
              RETURNING organization_id, client_id)
          SELECT o.id AS "organizationId", o.name AS "organizationName",
              c.id AS "clientId", c.name AS "clientName"
            FROM taken JOIN organizations o ON o.id = organization_id
              JOIN clients c ON c.id = client_id
            -- The page lists only clients that a member has connected.
            WHERE EXISTS (SELECT FROM member_connections m
              WHERE m.organization_id = o.id AND m.client_id = c.id)`,
        [new Date(clock()), new Date(clock() + DAY_MS), limit],
      );
      const left = [...due];
      try {
        for (const one of due) {
          const { organizationId, clientId } = one;
          const excluded = await access.clientBlocks.exclusions([organizationId], [clientId]);
          if (excluded.get(clientId)?.some(({ why }) => why === 'waiting')) await mailAdmins(one);
          left.shift();
        }
      } finally {
        // Only a process that stops here loses mails; a mail is never sent twice.
        for (const { organizationId, clientId } of left) {
          await database.query(
            `UPDATE approval_mails SET is_due = true, mail_at = $3
              WHERE organization_id = $1 AND client_id = $2`,
            [organizationId, clientId, new Date(clock())],
          );
        }
      }
      return due.length;
    },
  };
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
