/** Mails owners and admins of an organization that a new client waits for an approval. */
import type { Access } from '../accounts/access/access.ts';
import { type AccessLimit, limitAccess } from '../accounts/access/access-limit.ts';
import type { People } from '../accounts/access/people.ts';
import type { AccountMail } from '../accounts/mail/account-mail.ts';
import type { AttemptLimit } from '../base/attempt-limits.ts';
import type { Queries } from '../storage/queries.ts';
import { adminsOf } from './organization-reach.ts';

export interface ConnectedNow {
  readonly accountId: string;
  readonly client: { readonly id: string; readonly name: string };
  readonly limit: AccessLimit | undefined;
}

/** @param perOrganization allows one mail an hour, counted across all nodes */
export function createApprovalRequests(parts: {
  readonly database: Queries;
  readonly people: Pick<People, 'find'>;
  readonly access: Pick<Access, 'clientBlocks'>;
  readonly mail: Pick<AccountMail, 'requestApproval'>;
  readonly perOrganization: AttemptLimit;
}) {
  const { database, people, access, mail, perOrganization } = parts;
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
        for (const adminId of await adminsOf(database, organizationId)) {
          mail.requestApproval(adminId, {
            clientName: client.name,
            personName: person.account.name,
            organizationName,
            path: `/profile/organizations/${organizationId}`,
          });
        }
      }
    },
  };
}
