/** The consent step of an authorization request: may this client act for this user? */
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
    /** Shown after the decision if the response goes to an app on the user's device. */
    readonly 'handed-over': { readonly name: string; readonly url: string };
    readonly consent: {
      readonly action: string;
      readonly client: {
        readonly name: string;
        readonly tile: Tile;
        /** The owner's name; empty if the operator provides the client. */
        readonly owner: string;
        /** True if the operator verified the client. */
        readonly isVerified: boolean;
        /** Web pages that the client's owner has added as links, each with its host. */
        readonly links: readonly ClientLink[];
      };
      /** Undefined if the client has just been deleted. */
      readonly standing: DescribedStanding | undefined;
      readonly account: AccountSummary;
      readonly redirect: {
        /** The host in the spelling of `URL.host` (punycode); empty for a private-use scheme. */
        readonly host: string;
        readonly uri: string;
      };
      readonly organizations: readonly ReachedOrganization[];
      /** The user's organizations that block the client, or require an approval and have not given it. */
      readonly bars: readonly Message[];
      /** What the page shows, signed: the *Approve* button approves exactly that. */
      readonly shown: string;
      /** True if the user approved this client before and must approve it again. */
      readonly isRepeat: boolean;
      /** How the client changed since the earlier approval. */
      readonly since: readonly Message[];
      readonly limit: LimitFields;
      /** Why a click on *Approve* had no effect, as sentences; empty before the first click. */
      readonly changes: readonly Message[];
    };
  }
}

/** The hidden field of each form with a decision. The consent page puts into it, signed, what it showed. */
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

  /** Returns what the user may choose for the client, and which organizations exclude the client and why. */
  async function choicesOf(accountId: string, clientId: string) {
    const all = await access.accessOf({ accountId });
    const ids = all.map(({ id }) => id);
    const excluded = await access.clientBlocks.exclusions(ids, [clientId]);
    const exclusions = excluded.get(clientId) ?? [];
    // Exclude only blocking organizations: a limit may contain organizations that can still approve the client.
    const blocked = exclusions.filter(({ why }) => why === 'blocked');
    const open = all.filter(({ id }) => blocked.every((one) => one.organizationId !== id));
    const allowed = withoutWarehouses(open, new Set(exclusions.flatMap(({ warehouseId }) => warehouseId ?? [])));
    return { all, allowed, exclusions };
  }

  return {
    /** Answers `GET /interaction/:uid` while the interaction waits for a decision. */
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
      const kept = askedBefore && chosenBefore(askedBefore, limit);
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
        organizations: limitAccess(admitted, limit).map((one) => describeReached(one, kit.rightsInWords(ctx))),
        bars: describeExclusions(exclusions, all),
        isRepeat: earlier !== undefined,
        since: earlier ? sinceThen(earlier, asked) : [],
        limit: {
          ...limitFields(allowed, typed ?? kept ?? limit, { now: clock(), hasEnd: true }),
          // Open the fields only if they have a problem: open fields push the account and the host out of view.
          isOpen: typed !== undefined,
        },
        changes: askedBefore ? [message('consent.not-approved'), ...changesOf(askedBefore, asked)] : [],
      });
    },

    /** Answers a click on *Approve*. */
    async approve(ctx: Context, interaction: PendingConsent): Promise<void> {
      const form = formOf(ctx);
      const page = seals.open<Asked>(form.get(SHOWN_FIELD) ?? '');
      // The sealed field is invalid or belongs to another interaction: ask again.
      if (page?.interaction !== interaction.uid) return seeOther(ctx, ctx.path);
      // Read the limit with the user's current choices. A field with all that the page offered could be too large for a
      // form, and what the user has gained access to since is not on the page.
      const { allowed } = await choicesOf(interaction.account.id, interaction.client.id);
      const chosen = typedLimit(form, allowed, clock());
      if (chosen?.problem !== undefined) {
        ctx.status = 422;
        return this.show(ctx, interaction, chosen);
      }
      const approved = chosen ? { ...page, chosenLimit: limitJson(chosen) } : page;
      return seeOther(ctx, await interactions.approve(ctx, approved));
    },
  };
}

/** Returns the limit that the user chose on the earlier page; undefined if the stored limit has changed since. */
function chosenBefore({ chosenLimit, limit }: Asked, present: ConnectionLimit): ConnectionLimit | undefined {
  const isSameLimit = JSON.stringify(limit) === JSON.stringify(limitJson(present));
  return isSameLimit && chosenLimit ? limitFrom(chosenLimit) : undefined;
}

/** Lists how the client has changed since the earlier approval. */
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

/** Lists, as sentences, what changed since the page was rendered, except an end of everything by the operator. */
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
    // Count a missing connection as generation 1: an approval in another tab must not look like a disconnection.
    ...((now.generation ?? 1) > (before.generation ?? 1) ? [message('consent.disconnected')] : []),
  ];
}
