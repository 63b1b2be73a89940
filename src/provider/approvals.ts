/** What a user is asked to approve, and how an approval of exactly that is stored. */
import type { Context } from 'koa';
import type { InteractionResults } from 'oidc-provider';
import type { Access } from '../accounts/access/access.ts';
import type { Activity } from '../accounts/activity/activity.ts';
import type { Connections } from '../authorizations/connections.ts';
import { originOf } from '../base/request-state.ts';
import { type Client, type ClientLinks, isSameLinks, redirectHosts } from '../clients/client.ts';
import type { BrowserSession } from './browser-sessions.ts';

/** What one page showed. The redirect URI and the session are those of its interaction. */
export interface Asked {
  /** The uid: an approval is valid for this interaction only. */
  readonly interaction: string;
  readonly accountId: string;
  readonly clientId: string;
  readonly name: string;
  /** The result of `redirectHosts` for the client. */
  readonly hosts: readonly string[];
  /** Absent if the operator provides the client. */
  readonly providedBy?: string;
  readonly isVerified: boolean;
  readonly links: ClientLinks;
  /** The generation of the connection, ended or not; absent if there never was one. */
  readonly generation?: number;
}

export function askedOf(
  interaction: string,
  accountId: string,
  client: Client,
  generation: number | undefined,
): Asked {
  return {
    interaction,
    accountId,
    clientId: client.id,
    name: client.name,
    hosts: redirectHosts(client),
    isVerified: client.isVerified,
    links: client.links,
    ...(client.ownerName !== undefined && { providedBy: client.ownerName }),
    ...(generation !== undefined && { generation }),
  };
}

/** True if the client is still as the page showed it. */
export const isStillSo = (asked: Asked, client: Client): boolean =>
  asked.clientId === client.id &&
  asked.name === client.name &&
  asked.providedBy === client.ownerName &&
  asked.isVerified === client.isVerified &&
  isSameLinks(asked.links, client.links) &&
  asked.hosts.join() === redirectHosts(client).join();

/** Returns the approval in the form in which the engine carries it from the page's answer on. */
export const approvalOf = (asked: Asked): InteractionResults => ({ consent: { asked } });

/** Returns what was approved by an answer, if anything was. */
export const askedIn = (result: InteractionResults | undefined): Asked | undefined =>
  result?.consent?.asked as Asked | undefined;

export type Approvals = ReturnType<typeof createApprovals>;

export interface ApprovalsParts {
  readonly access: Access;
  readonly activity: Activity;
  /** Absent if the service sends no mail. */
  readonly mail?: { tell(ctx: Context, accountId: string, client: string): void } | undefined;
  readonly connections: Pick<Connections, 'find' | 'rememberConsent'>;
}

export function createApprovals(parts: ApprovalsParts) {
  const { access, activity, connections, mail } = parts;
  return {
    /**
     * Connects the user and the client, as the page said.
     *
     * @param session in which it was approved
     * @returns the generation of the connection; undefined, with nothing stored, if the account's
     *   sessions or the connection were ended since
     */
    async keep(
      ctx: Context,
      asked: Asked,
      session: Pick<BrowserSession, 'generation' | 'uid'>,
    ): Promise<number | undefined> {
      const { accountId, clientId, name, hosts } = asked;
      // Send no mail if an existing connection is only renewed.
      const isNew = mail && (await connections.find(accountId, clientId)) === undefined;
      const generation = await connections.rememberConsent({
        accountId,
        clientId,
        name,
        hosts,
        access: await access.accessThrough(clientId, accountId),
        page: {
          sessionGeneration: session.generation,
          sessionUid: session.uid,
          generation: asked.generation,
        },
      });
      if (generation === undefined) return undefined;
      await activity.record({
        action: 'connected',
        actor: 'person',
        accountId,
        details: { client_id: clientId, client_name: name },
        origin: originOf(ctx),
      });
      if (isNew) mail.tell(ctx, accountId, name);
      return generation;
    },
  };
}
