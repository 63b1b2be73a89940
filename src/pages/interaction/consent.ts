/** The consent step of an authorization request: may this client act for this person? */
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
    /** After the decision, where an app on the device gets the answer. */
    readonly 'handed-over': { readonly name: string; readonly url: string };
    readonly consent: {
      readonly action: string;
      readonly client: {
        readonly name: string;
        /** The owner's name, or 'the operator'. */
        readonly providedBy: string;
        readonly providedByOperator: boolean;
        /** The operator looked at it. */
        readonly isVerified: boolean;
        /** Pages of whoever provides it, with the host each is at. */
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
      /** Organizations of the person that do not let the client in. */
      readonly bars: readonly BarredThere[];
      /** What the page shows, sealed: it is what Approve stands for. */
      readonly shown: string;
      /** The person approved this client before and is asked again. */
      readonly isRepeat: boolean;
      /** What is different from then, each a clause; the rest is marked where it stands. */
      readonly since: readonly string[];
      /** How many of those are not told. */
      readonly more: number;
      /** Sentences: what is different from the page they approved a moment ago, if it is. */
      readonly changes: readonly string[];
    };
  }
}

const OPERATOR = 'the operator';
/** More than these nobody reads before a decision. */
const MOST_CLAUSES = 6;
/** The hidden field with what the page showed, sealed. */
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
    /** `GET /interaction/:uid` while it waits for a decision. */
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
        since: since.slice(0, MOST_CLAUSES),
        more: Math.max(0, since.length - MOST_CLAUSES),
        changes: askedBefore ? changesOf(askedBefore, asked) : [],
      });
    },

    /** `POST /interaction/:uid` while it waits for a decision. */
    async submit(ctx: Context, interaction: PendingConsent): Promise<void> {
      const form = formOf(ctx);
      switch (form.get('decision')) {
        case 'approve': {
          const asked = seals.open<Asked>(form.get(SHOWN_FIELD) ?? '');
          // An approval of nothing that this page has shown: ask.
          if (asked?.interaction !== interaction.uid) return seeOther(ctx, ctx.path);
          return seeOther(ctx, await interactions.approve(ctx, asked));
        }
        case 'deny':
          return seeOther(ctx, await interactions.deny(ctx));
        case 'switch-account':
          upstream.askWho(ctx);
          return seeOther(ctx, await interactions.switchAccount(ctx));
        default:
          // No button was pressed that this page has: ask again.
          return seeOther(ctx, ctx.path);
      }
    },
  };
}

/** In clauses: what is different from the last approval. */
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

/** In sentences: what is different from what was approved. */
function changesOf(before: Asked, now: Asked): string[] {
  const sentences: string[] = [];
  if (before.isVerified && !now.isVerified) sentences.push('It is no longer marked as verified.');
  // A node of the version before sealed none.
  if (!isSameLinks(before.links ?? {}, now.links)) sentences.push('Its links were changed.');
  if (before.name !== now.name) sentences.push(`It was called “${before.name}”.`);
  if (before.providedBy !== now.providedBy) {
    sentences.push(`It was provided by ${before.providedBy ?? OPERATOR}.`);
  }
  const added = now.hosts.filter((host) => !before.hosts.includes(host));
  if (added.length > 0) sentences.push(`It may now send you to ${added.join(', ')} as well.`);
  const removed = before.hosts.filter((host) => !now.hosts.includes(host));
  if (removed.length > 0) sentences.push(`It no longer sends you to ${removed.join(', ')}.`);
  // Approved in another tab, it has one, and was not disconnected.
  if ((now.generation ?? 1) > (before.generation ?? 1)) sentences.push('It was disconnected.');
  return sentences;
}
