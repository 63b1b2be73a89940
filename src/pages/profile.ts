/** `/profile`: who is signed in, and what they reach. */
import type { Context } from 'koa';
import type { Access } from '../accounts/access.ts';
import type { AccountRegistry } from '../accounts/account-registry.ts';
import type { BrowserSessions } from '../provider/browser-sessions.ts';
import { ENDPOINT } from '../provider/endpoints.ts';
import { type PageHost, seeOther, signedInAccount } from './page.ts';
import { loginPath } from './sign-in.ts';

export interface ProfileParts {
  readonly host: PageHost;
  readonly accounts: AccountRegistry;
  readonly access: Access;
  readonly sessions: BrowserSessions;
}

export function profilePage({ host, accounts, access, sessions }: ProfileParts) {
  return {
    async show(ctx: Context): Promise<void> {
      const account = await signedInAccount(ctx, { sessions, accounts });
      if (!account) return seeOther(ctx, loginPath(ctx.path));
      await host.render(ctx, 'profile', {
        account,
        formToken: host.formToken(ctx),
        organizations: await access.accessOf({ accountId: account.id }),
        keepAliveUrl: ENDPOINT.refreshSession,
      });
    },
  };
}
