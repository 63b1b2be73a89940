/** The consent step of an authorization request: may this client act for this person? */
import type { Context } from 'koa';
import type { Access } from '../accounts/access.ts';
import type { Activity } from '../accounts/activity.ts';
import type { Connections } from '../authorizations/connections.ts';
import { redirectHosts } from '../clients/client.ts';
import { formOf } from '../provider/form.ts';
import type { Interactions, PendingConsent } from '../provider/interactions.ts';
import { originOf, type PageHost, seeOther } from './page.ts';

export interface ConsentParts {
  readonly host: PageHost;
  readonly access: Access;
  readonly activity: Activity;
  readonly connections: Connections;
  readonly interactions: Interactions;
}

export function consentPage(parts: ConsentParts) {
  const { host, access, activity, connections, interactions } = parts;

  /** Before the grant, which belongs to the connection. */
  async function connect(ctx: Context, { client, account }: PendingConsent): Promise<void> {
    const accountId = account.id;
    await connections.rememberConsent({
      accountId,
      clientId: client.id,
      name: client.name,
      hosts: redirectHosts(client),
      access: await access.accessOf({ accountId }),
    });
    await activity.record({
      action: 'connected',
      actor: 'person',
      accountId,
      details: { client_id: client.id, client_name: client.name },
      origin: originOf(ctx),
    });
  }

  return {
    /** `GET /interaction/:uid` while it waits for a decision. */
    async show(ctx: Context, interaction: PendingConsent): Promise<void> {
      const { client, account, redirectUri } = interaction;
      const accountId = account.id;
      const [organizations, remembered] = await Promise.all([
        access.accessOf({ accountId }),
        connections.find(accountId, client.id),
      ]);
      await host.render(ctx, 'consent', {
        action: ctx.path,
        formToken: host.formToken(ctx),
        client: {
          name: client.name,
          providedBy: client.ownerName ?? 'the operator',
          providedByOperator: client.ownerName === undefined,
        },
        account: { name: account.name, email: account.email },
        redirect: { host: new URL(redirectUri).host, uri: redirectUri },
        organizations,
        isRepeat: remembered !== undefined,
      });
    },

    /** `POST /interaction/:uid` while it waits for a decision. */
    async submit(ctx: Context, interaction: PendingConsent): Promise<void> {
      switch (formOf(ctx).get('decision')) {
        case 'approve':
          if (!interaction.isTest) await connect(ctx, interaction);
          return seeOther(ctx, await interactions.approve(ctx));
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
