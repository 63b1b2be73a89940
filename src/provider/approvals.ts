/** Stores a user's approval of exactly the authorization request that a consent page has shown. */
import type { Context } from 'koa';
import type { InteractionResults } from 'oidc-provider';
import {
  type ConnectionLimit,
  type LimitJson,
  limitDetails,
  limitFrom,
  limitJson,
} from '../accounts/access/access-limit.ts';
import type { Account } from '../accounts/account.ts';
import type { Activity } from '../accounts/activity/activity.ts';
import type { ConnectedConsent, Connections } from '../authorizations/connections.ts';
import { requestOrigin } from '../base/request-state.ts';
import { type Client, type ClientLinks, isSameLinks, redirectHosts } from '../clients/client.ts';
import type { BrowserSession } from './browser-sessions.ts';

/** The authorization request as a consent page showed it. The interaction itself holds the redirect URI and session. */
export interface Asked {
  /** The uid of the interaction. The approval is valid for no other interaction. */
  readonly interaction: string;
  readonly accountId: string;
  readonly clientId: string;
  readonly name: string;
  readonly hosts: readonly string[];
  /** Absent if the operator provides the client. */
  readonly providedBy?: string;
  readonly ownedSince?: string;
  readonly isVerified: boolean;
  readonly links: ClientLinks;
  /** The generation of the connection, even if it has ended; absent if the user never connected the client. */
  readonly generation?: number;
  /** If the client has another `endedThrough` now, all its authorizations were ended after the page was shown. */
  readonly endedThrough: number;
  readonly limit: LimitJson;
  /** The limit that the user chose on the page instead of `limit`; added from the submitted form. */
  readonly chosenLimit?: LimitJson;
}

export function askedOf(
  interaction: string,
  accountId: string,
  client: Client,
  generation: number | undefined,
  limit: ConnectionLimit,
): Asked {
  return {
    interaction,
    accountId,
    clientId: client.id,
    name: client.name,
    hosts: redirectHosts(client),
    isVerified: client.isVerified,
    links: client.links,
    endedThrough: client.endedThrough,
    ...(client.ownerName !== undefined && { providedBy: client.ownerName }),
    ...(client.ownedSince && { ownedSince: client.ownedSince.toJSON() }),
    ...(generation !== undefined && { generation }),
    limit: limitJson(limit),
  };
}

export const isStillSo = (asked: Asked, client: Client): boolean =>
  asked.clientId === client.id &&
  asked.name === client.name &&
  asked.providedBy === client.ownerName &&
  asked.ownedSince === client.ownedSince?.toJSON() &&
  asked.isVerified === client.isVerified &&
  isSameLinks(asked.links, client.links) &&
  asked.hosts.join() === redirectHosts(client).join();

/** Returns the approval as the engine stores it in the interaction. */
export const approvalOf = (asked: Asked): InteractionResults => ({ consent: { asked } });

/** Returns the approved request; undefined if this result contains no approval. */
export const askedIn = (result: InteractionResults | undefined): Asked | undefined =>
  result?.consent?.asked as Asked | undefined;

export type Approvals = ReturnType<typeof createApprovals>;

export interface ApprovalsParts {
  readonly activity: Activity;
  readonly mail?:
    | {
        notifyNew(ctx: Context, accountId: string, client: Pick<Client, 'name'>): void;
        /** Called if a client was authorized without a click, in a browser in which the user has never signed in. */
        notifySilent(ctx: Context, accountId: string, client: Pick<Client, 'name'>): void;
      }
    | undefined;
  readonly connections: Pick<Connections, 'rememberConsent' | 'recordSilent'>;
  isKnownBrowser(ctx: Context, account: Account): boolean;
}

export function createApprovals(parts: ApprovalsParts) {
  const { activity, connections, mail, isKnownBrowser } = parts;
  return {
    /**
     * Connects the user and the client with the values that the page showed.
     *
     * @returns the generations of the connection and client; undefined (nothing is stored) if the page is outdated (see
     *   `Connections.rememberConsent`)
     */
    async keep(
      ctx: Context,
      asked: Asked,
      session: Pick<BrowserSession, 'generation' | 'uid'>,
    ): Promise<Pick<ConnectedConsent, 'generation' | 'clientGeneration'> | undefined> {
      const { accountId, clientId, name, hosts, ownedSince } = asked;
      const shown = limitFrom(asked.limit);
      const limit = asked.chosenLimit ? limitFrom(asked.chosenLimit) : shown;
      const approval = {
        accountId,
        clientId,
        name,
        hosts,
        ownedSince: ownedSince === undefined ? null : new Date(ownedSince),
        limit,
        page: {
          sessionGeneration: session.generation,
          sessionUid: session.uid,
          generation: asked.generation,
          endedThrough: asked.endedThrough,
          limit: shown,
        },
      };
      const connected = await connections.rememberConsent(approval, (tx) =>
        activity.record(
          {
            action: 'connected',
            actor: 'person',
            accountId,
            details: { client_id: clientId, client_name: name, ...limitDetails(limit) },
            origin: requestOrigin(ctx),
          },
          tx,
        ),
      );
      if (connected === undefined) return undefined;
      if (connected.isNew) mail?.notifyNew(ctx, accountId, { name });
      return connected;
    },

    /**
     * Records in the activity log that a client got a code without a click, and mails the user if this browser is new.
     * Does so for each client at most once a day per kind of browser.
     */
    async recordSilent(
      ctx: Context,
      account: Account,
      client: Pick<Client, 'id' | 'name'>,
      remembered: Pick<ConnectedConsent, 'recordedIn'>,
    ): Promise<void> {
      const place = isKnownBrowser(ctx, account) ? 'known browser' : 'elsewhere';
      if (remembered.recordedIn.includes(place)) return;
      const entry = {
        action: 'authorized_silently',
        actor: 'person',
        accountId: account.id,
        details: { client_id: client.id, client_name: client.name },
        origin: requestOrigin(ctx),
      } as const;
      const isRecorded = await connections.recordSilent(
        { accountId: account.id, clientId: client.id },
        place,
        (rows, use) => activity.partOf(entry, rows, use),
      );
      if (isRecorded && place === 'elsewhere') mail?.notifySilent(ctx, account.id, client);
    },
  };
}
