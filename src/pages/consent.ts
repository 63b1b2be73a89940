/** The consent step of an authorization request: may this client act for this person? */
import type { Context } from 'koa';
import { type Asked, askedOf } from '../provider/approvals.ts';
import { formOf } from '../provider/form.ts';
import type { PendingConsent } from '../provider/interactions.ts';
import { seeOther } from './page.ts';
import type { PageParts } from './routes.ts';

declare module './view-data.ts' {
  interface ViewData {
    readonly consent: {
      readonly action: string;
      readonly client: {
        readonly name: string;
        /** The owner's name, or 'the operator'. */
        readonly providedBy: string;
        readonly providedByOperator: boolean;
      };
      readonly account: AccountSummary;
      readonly redirect: {
        /** As `URL.host` writes it (punycode); empty for a private-use scheme. */
        readonly host: string;
        readonly uri: string;
      };
      readonly organizations: readonly ReachedOrganization[];
      /** What the page shows, sealed: it is what Approve stands for. */
      readonly shown: string;
      /** The person approved this client before and is asked again. */
      readonly isRepeat: boolean;
      /** Sentences: what is different from the page they approved a moment ago, if it is. */
      readonly changes: readonly string[];
    };
  }
}

const OPERATOR = 'the operator';
/** The hidden field with what the page showed, sealed. */
export const SHOWN_FIELD = 'shown';

export function consentAnswers(parts: PageParts) {
  const { host, access, connections, interactions, seals } = parts;

  return {
    /** `GET /interaction/:uid` while it waits for a decision. */
    async show(ctx: Context, interaction: PendingConsent): Promise<void> {
      const { uid, client, account, redirectUri, askedBefore } = interaction;
      const accountId = account.id;
      const [organizations, remembered, generation] = await Promise.all([
        access.accessThrough(client.id, accountId),
        connections.find(accountId, client.id),
        connections.generationOf(accountId, client.id),
      ]);
      const asked = askedOf(uid, accountId, client, generation);
      await host.render(ctx, 'consent', {
        action: ctx.path,
        shown: seals.seal(asked),
        client: {
          name: client.name,
          providedBy: client.ownerName ?? OPERATOR,
          providedByOperator: client.ownerName === undefined,
        },
        account: { name: account.name, email: account.email },
        redirect: { host: new URL(redirectUri).host, uri: redirectUri },
        organizations,
        isRepeat: remembered !== undefined,
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
          return seeOther(ctx, await interactions.switchAccount(ctx));
        default:
          // No button was pressed that this page has: ask again.
          return seeOther(ctx, ctx.path);
      }
    },
  };
}

/** In sentences: what is different from what was approved. */
function changesOf(before: Asked, now: Asked): string[] {
  const sentences: string[] = [];
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
