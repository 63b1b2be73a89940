/** The consent step of an authorization request: may this client act for this user? */
import type { Context } from 'koa';
import type { Access } from '../../accounts/access/access.ts';
import {
  type ComparedOrganization,
  compareAccess,
} from '../../accounts/access/access-difference.ts';
import type { ConnectedConsent, Connections } from '../../authorizations/connections.ts';
import type { Seals } from '../../base/seals.ts';
import { type Client, isSameLinks, LINKS, type LinkKind } from '../../clients/client.ts';
import { type Asked, askedOf } from '../../provider/approvals.ts';
import { formOf } from '../../provider/form.ts';
import type { Interactions, PendingConsent } from '../../provider/interactions.ts';
import { seeOther } from '../page.ts';
import type { PageKit } from '../page-kit.ts';
import type { UpstreamSignIns } from '../sign-in/upstream-ways.ts';
import { type BarredThere, barsInWords, changesInWords, reachedInWords } from '../words/reached.ts';

declare module '../view-data.ts' {
  interface ViewData {
    /** Shown after the decision if an app on the device receives the answer. */
    readonly 'handed-over': { readonly name: string; readonly url: string };
    readonly consent: {
      readonly action: string;
      readonly client: {
        readonly name: string;
        /** The owner's name, or 'the operator'. */
        readonly providedBy: string;
        readonly providedByOperator: boolean;
        /** True if the operator verified the client. */
        readonly isVerified: boolean;
        /** Pages of the client's provider, each with its host. */
        readonly links: readonly {
          readonly label: string;
          readonly host: string;
          readonly url: string;
        }[];
      };
      readonly account: AccountSummary;
      readonly redirect: {
        /** As `URL.host` writes it (punycode); empty for a private-use scheme. */
        readonly host: string;
        readonly uri: string;
      };
      readonly organizations: readonly ReachedOrganization[];
      /** The user's organizations that block the client. */
      readonly bars: readonly BarredThere[];
      /** What the page shows, signed: the *Approve* button approves exactly this. */
      readonly shown: string;
      /** True if the user approved this client before and is asked again. */
      readonly isRepeat: boolean;
      /** What changed since then, as clauses; the list of organizations marks its changes, too. */
      readonly since: readonly string[];
      /** The number of clauses that are left out. */
      readonly more: number;
      /** What changed since the user approved this page a moment ago, as sentences. */
      readonly changes: readonly string[];
    };
  }
}

const OPERATOR = 'the operator';
/** Users do not read more before a decision. */
const MAX_CLAUSES = 6;
/** The hidden field with what the page showed, signed. */
export const SHOWN_FIELD = 'shown';

export type ConsentSteps = ReturnType<typeof createConsentSteps>;

export function createConsentSteps(parts: {
  readonly kit: Pick<PageKit, 'render'>;
  readonly access: Access;
  readonly connections: Connections;
  readonly interactions: Interactions;
  readonly seals: Seals;
  readonly upstream: Pick<UpstreamSignIns, 'askWho'>;
}) {
  const { kit, access, connections, interactions, seals, upstream } = parts;
  return {
    /** Answers `GET /interaction/:uid` while it waits for a decision. */
    async show(ctx: Context, interaction: PendingConsent): Promise<void> {
      const { uid, client, account, redirectUri, askedBefore } = interaction;
      const accountId = account.id;
      const all = await access.accessOf({ accountId });
      const [barred, earlier, generation] = await Promise.all([
        access.bars.within(all.map(({ id }) => id)),
        connections.find(accountId, client.id),
        connections.generationOf(accountId, client.id),
      ]);
      const bars = barred.get(client.id) ?? [];
      const reached = all.filter(({ id }) => bars.every((bar) => bar.organizationId !== id));
      const asked = askedOf(uid, accountId, client, generation);
      const organizations = compareAccess(earlier?.access ?? undefined, reached);
      const since = earlier ? sinceThen(earlier, asked, organizations) : [];
      await kit.render(ctx, 'consent', {
        action: ctx.path,
        shown: seals.seal(asked),
        client: {
          name: client.name,
          providedBy: client.ownerName ?? OPERATOR,
          providedByOperator: client.ownerName === undefined,
          isVerified: client.isVerified,
          links: linksOf(client),
        },
        account: { name: account.name, email: account.email },
        redirect: { host: new URL(redirectUri).host, uri: redirectUri },
        organizations: organizations.map(reachedInWords),
        bars: barsInWords(bars, all),
        isRepeat: earlier !== undefined,
        since: since.slice(0, MAX_CLAUSES),
        more: Math.max(0, since.length - MAX_CLAUSES),
        changes: askedBefore ? changesOf(askedBefore, asked) : [],
      });
    },

    /** Answers `POST /interaction/:uid` while it waits for a decision. */
    async submit(ctx: Context, interaction: PendingConsent): Promise<void> {
      const form = formOf(ctx);
      switch (form.get('decision')) {
        case 'approve': {
          const asked = seals.open<Asked>(form.get(SHOWN_FIELD) ?? '');
          // This page did not show what was approved: ask again.
          if (asked?.interaction !== interaction.uid) return seeOther(ctx, ctx.path);
          return seeOther(ctx, await interactions.approve(ctx, asked));
        }
        case 'deny':
          return seeOther(ctx, await interactions.deny(ctx));
        case 'switch-account':
          upstream.askWho(ctx);
          return seeOther(ctx, await interactions.switchAccount(ctx));
        default:
          // Not a button of this page: ask again.
          return seeOther(ctx, ctx.path);
      }
    },
  };
}

/** Lists what changed since the last approval, as clauses. */
function sinceThen(
  before: ConnectedConsent,
  now: Asked,
  organizations: readonly ComparedOrganization[],
): string[] {
  const added = now.hosts.filter((host) => !before.hosts.includes(host));
  const removed = before.hosts.filter((host) => !now.hosts.includes(host));
  return [
    ...(before.name === now.name ? [] : [`Name was ${before.name}, now ${now.name}`]),
    ...(added.length > 0 ? [`It may now send you to ${added.join(', ')} as well`] : []),
    ...(removed.length > 0 ? [`It no longer sends you to ${removed.join(', ')}`] : []),
    ...changesInWords(organizations),
  ];
}

const LABELS: Readonly<Record<LinkKind, string>> = {
  homepage: 'Website',
  support: 'Help',
  privacy: 'Privacy',
};

const linksOf = ({ links }: Client) =>
  LINKS.flatMap((kind) => {
    const url = links[kind];
    return url === undefined ? [] : [{ label: LABELS[kind], host: new URL(url).host, url }];
  });

/** Lists what changed since the page was approved, as sentences. */
function changesOf(before: Asked, now: Asked): string[] {
  const sentences: string[] = [];
  if (before.isVerified && !now.isVerified) sentences.push('It is no longer marked as verified.');
  // A node of the previous version does not include links.
  if (!isSameLinks(before.links ?? {}, now.links)) sentences.push('Its links were changed.');
  if (before.name !== now.name) sentences.push(`It was called “${before.name}”.`);
  if (before.providedBy !== now.providedBy) {
    sentences.push(`It was provided by ${before.providedBy ?? OPERATOR}.`);
  }
  const added = now.hosts.filter((host) => !before.hosts.includes(host));
  if (added.length > 0) sentences.push(`It may now send you to ${added.join(', ')} as well.`);
  const removed = before.hosts.filter((host) => !now.hosts.includes(host));
  if (removed.length > 0) sentences.push(`It no longer sends you to ${removed.join(', ')}.`);
  // Undefined without a connection: an approval in another tab (1) is not a disconnection.
  if ((now.generation ?? 1) > (before.generation ?? 1)) sentences.push('It was disconnected.');
  return sentences;
}
