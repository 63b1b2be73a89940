/** The consent step of an authorization request, which asks the user whether the client may act for them. */
import type { Context } from 'koa';
import type { Access } from '../../accounts/access/access.ts';
import {
  type ConnectionLimit,
  limitAccess,
  limitFrom,
  limitJson,
  NO_LIMIT,
  withoutWarehouses,
} from '../../accounts/access/access-limit.ts';
import type { ClientStandings } from '../../authorizations/client-standing.ts';
import type { ConnectedConsent, Connections } from '../../authorizations/connections.ts';
import type { Clock } from '../../base/clock.ts';
import { type Message, message } from '../../base/message.ts';
import type { Seals } from '../../base/seals.ts';
import { isSameLinks } from '../../clients/client.ts';
import { type Asked, askedOf } from '../../provider/approvals.ts';
import { formOf } from '../../provider/form.ts';
import type { Interactions, PendingConsent } from '../../provider/interactions.ts';
import { type LimitFields, limitFields, type TypedLimit, typedLimit } from '../forms/limit-form.ts';
import { seeOther } from '../page.ts';
import type { PageKit } from '../page-kit.ts';
import { type ClientLink, type DescribedStanding, describeStanding, linksOf } from '../words/client-standing.ts';
import { describeExclusions, describeReached, type ReachedOrganization } from '../words/reached.ts';
import { type Tile, tileOf } from '../words/tile.ts';

declare module '../view-data.ts' {
  interface ViewData {
    /** The page after a decision whose redirect opens an app on the user's device. */
    readonly 'handed-over': { readonly name: string; readonly url: string };
    readonly consent: {
      readonly action: string;
      readonly client: {
        readonly name: string;
        readonly tile: Tile;
        /** The owner's name; empty if the operator provides the client. */
        readonly owner: string;
        readonly isVerified: boolean;
        readonly links: readonly ClientLink[];
      };
      /** Undefined if the client has just been deleted. */
      readonly standing: DescribedStanding | undefined;
      readonly account: AccountSummary;
      readonly redirect: {
        /** The host in punycode, as `URL.host` returns it; empty for a private-use scheme. */
        readonly host: string;
        readonly uri: string;
      };
      readonly organizations: readonly ReachedOrganization[];
      /** Describes which of the user's organizations block the client, or require an approval that is missing. */
      readonly bars: readonly Message[];
      /** The signed data of the page, so that the button *Approve* approves exactly what the page showed. */
      readonly shown: string;
      /** True if the user has approved the client before. */
      readonly isRepeat: boolean;
      /** How the client has changed since the earlier approval, as sentences. */
      readonly since: readonly Message[];
      readonly limit: LimitFields;
      /** Reasons why the button *Approve* had no effect; empty before the button is pressed. */
      readonly changes: readonly Message[];
    };
  }
}

/** The hidden field of every form with a decision. On the consent page, it contains the signed data of the page. */
export const SHOWN_FIELD = 'shown';

export type ConsentSteps = ReturnType<typeof createConsentSteps>;

export function createConsentSteps(parts: {
  readonly kit: Pick<PageKit, 'render' | 'rightsInWords'>;
  readonly clock: Clock;
  readonly access: Access;
  readonly clientStandings: Pick<ClientStandings, 'find'>;
  readonly connections: Connections;
  readonly interactions: Pick<Interactions, 'approve'>;
  readonly seals: Seals;
}) {
  const { kit, clock, access, clientStandings, connections } = parts;
  const { interactions, seals } = parts;

  /** Returns what the user may allow the client to access, and which organizations exclude the client. */
  async function choicesOf(accountId: string, clientId: string) {
    const all = await access.accessOf({ accountId });
    const ids = all.map(({ id }) => id);
    const excluded = await access.clientBlocks.exclusions(ids, [clientId]);
    const exclusions = excluded.get(clientId) ?? [];
    // Omit only organizations that block the client: the user may choose one that will approve the client later.
    const blocked = exclusions.filter(({ why }) => why === 'blocked');
    const open = all.filter(({ id }) => blocked.every((one) => one.organizationId !== id));
    const allowed = withoutWarehouses(open, new Set(exclusions.flatMap(({ warehouseId }) => warehouseId ?? [])));
    return { all, allowed, exclusions };
  }

  return {
    async show(ctx: Context, interaction: PendingConsent, typed?: TypedLimit): Promise<void> {
      const { uid, client, account, redirectUri, askedBefore } = interaction;
      const accountId = account.id;
      const [{ all, allowed, exclusions }, admitted, earlier, generation, standing] = await Promise.all([
        choicesOf(accountId, client.id),
        access.accessThrough(accountId, { clientId: client.id }),
        connections.find(accountId, client.id),
        connections.generationOf(accountId, client.id),
        clientStandings.find(client.id, accountId),
      ]);
      const limit = earlier?.limit ?? NO_LIMIT;
      // The limit that the button *Approve* applies if the user changes nothing.
      const offered = (askedBefore && chosenBefore(askedBefore, limit)) ?? limit;
      const asked = askedOf(uid, accountId, client, generation, limit);
      await kit.render(ctx, 'consent', {
        action: ctx.path,
        shown: seals.seal(asked),
        client: {
          name: client.name,
          tile: tileOf(client),
          owner: client.ownerName ?? '',
          isVerified: client.isVerified,
          links: linksOf(client),
        },
        standing: standing && describeStanding(standing, clock()),
        account: { name: account.name, email: account.email },
        redirect: { host: new URL(redirectUri).host, uri: redirectUri },
        organizations: limitAccess(admitted, offered).map((one) => describeReached(one, kit.rightsInWords(ctx))),
        bars: describeExclusions(exclusions, all),
        isRepeat: earlier !== undefined,
        since: earlier ? sinceThen(earlier, asked) : [],
        limit: {
          ...limitFields(allowed, typed ?? offered, { now: clock(), hasEnd: true }),
          // Open the fields only if they have a problem: open fields push the account and the host out of view.
          isOpen: typed !== undefined,
        },
        changes: askedBefore ? [message('consent.not-approved'), ...changesOf(askedBefore, asked)] : [],
      });
    },

    async approve(ctx: Context, interaction: PendingConsent): Promise<void> {
      const form = formOf(ctx);
      const page = seals.open<Asked>(form.get(SHOWN_FIELD) ?? '');
      // Ask again if the signed field is invalid or belongs to another interaction.
      if (page?.interaction !== interaction.uid) return seeOther(ctx, ctx.path);
      // Read the choices again, because a hidden field with all choices of the page could be too large for a form.
      const { allowed } = await choicesOf(interaction.account.id, interaction.client.id);
      const limit = limitFrom(page.limit);
      const shown = interaction.askedBefore && chosenBefore(interaction.askedBefore, limit);
      const chosen = typedLimit(form, allowed, clock(), shown ?? limit);
      if (chosen?.problem !== undefined) {
        ctx.status = 422;
        return this.show(ctx, interaction, chosen);
      }
      const kept = chosen ?? shown;
      const approved = kept ? { ...page, chosenLimit: limitJson(kept) } : page;
      return seeOther(ctx, await interactions.approve(ctx, approved));
    },
  };
}

/** Returns the limit that the user chose on the earlier page, unless the stored limit has changed since. */
function chosenBefore({ chosenLimit, limit }: Asked, present: ConnectionLimit): ConnectionLimit | undefined {
  const isSameLimit = JSON.stringify(limit) === JSON.stringify(limitJson(present));
  return isSameLimit && chosenLimit ? limitFrom(chosenLimit) : undefined;
}

function sinceThen(before: ConnectedConsent, now: Asked): Message[] {
  return [
    ...(before.name === now.name ? [] : [message('consent.name-changed', { before: before.name, now: now.name })]),
    ...hostChanges(before, now),
    ...(before.isSameOwner || now.ownedSince === undefined
      ? []
      : [message('consent.owned-since', { ...ownerOf(now), since: { iso: now.ownedSince } })]),
  ];
}

const ownerOf = ({ providedBy: owner = '' }: Asked) => ({ owner, isOperator: String(!owner) });

function hostChanges(before: Pick<Asked, 'hosts'>, now: Asked): Message[] {
  const added = now.hosts.filter((host) => !before.hosts.includes(host)).join(', ');
  const removed = before.hosts.filter((host) => !now.hosts.includes(host)).join(', ');
  return [
    ...(added ? [message('consent.hosts-added', { hosts: added })] : []),
    ...(removed ? [message('consent.hosts-removed', { hosts: removed })] : []),
  ];
}

/** Lists the changes since the page was rendered. Does not mention that the operator has ended the client's access. */
function changesOf(before: Asked, now: Asked): Message[] {
  return [
    ...(before.isVerified && !now.isVerified ? [message('consent.not-verified-now')] : []),
    ...(isSameLinks(before.links, now.links) ? [] : [message('consent.links-changed')]),
    ...(before.name === now.name ? [] : [message('consent.former-name', { name: before.name })]),
    ...(before.providedBy === now.providedBy && before.ownedSince === now.ownedSince
      ? []
      : [message('consent.former-owner', ownerOf(before))]),
    ...(JSON.stringify(before.limit) === JSON.stringify(now.limit) ? [] : [message('consent.limit-changed')]),
    ...hostChanges(before, now),
    // Use generation 1 if no connection exists: otherwise, an approval in another tab would look like a disconnection.
    ...((now.generation ?? 1) > (before.generation ?? 1) ? [message('consent.disconnected')] : []),
  ];
}
