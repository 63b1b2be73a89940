/** `/password`: where a one-time link leads, to set a password. */
import type { Context } from 'koa';
import type { Account } from '../../accounts/account.ts';
import { TooManyPasswords } from '../../accounts/passwords/work.ts';
import { endConnections } from '../../authorizations/endings.ts';
import { formOf } from '../../provider/form.ts';
import { Refusal } from '../../refusal.ts';
import { connectionsInWords } from '../connections/view.ts';
import { originOf } from '../page.ts';
import { get, type PageParts, post, type Route } from '../routes.ts';
import { sayBusy } from '../sign-in/password-check.ts';
import { fromOf } from '../words/browser.ts';

declare module '../view-data.ts' {
  interface ViewData {
    readonly password: {
      /** Set for a new account, chosen anew for a forgotten one. */
      readonly heading: string;
      readonly email: string;
      readonly action: string;
      /** What the link carried: in the form, so that it is in the address no longer. */
      readonly token: string;
      /** What else acts for the person, in words; absent where nothing does. */
      readonly connections: string | undefined;
      readonly isEndingConnections: boolean;
      readonly problem: string | undefined;
    };
    readonly 'password-link-over': {
      readonly title: string;
      readonly signInUrl: string;
      /** Where another link is sent from; absent where no mail is sent. */
      readonly forgotPasswordUrl: string | undefined;
    };
  }
}

const SET = 'Your password is set. Sign in with it now.';

/** The token comes in the query, which is never logged, and goes on in the form. */
export function passwordPage(parts: PageParts): Route[] {
  if (!parts.passwords) return [];
  const { host, connections, disconnect, devices, keptForms, waiting, forgotPasswordUrl } = parts;
  const { passwordLinks: links, passwordChanges: changes } = parts;

  async function draw(
    ctx: Context,
    token: string,
    refused: { problem?: string; isEndingConnections?: boolean } = {},
  ): Promise<void> {
    const link = await links.find(token);
    if (!link) return sayOver(ctx);
    const connected = await connections.listOf(link.account.id);
    await host.render(ctx, 'password', {
      heading: link.purpose === 'invitation' ? 'Set your password' : 'Choose a new password',
      email: link.account.email,
      action: ctx.path,
      token,
      connections: connectionsInWords(connected.length),
      isEndingConnections: refused.isEndingConnections ?? false,
      problem: refused.problem,
    });
  }

  /** Used, expired and never made look the same. */
  async function sayOver(ctx: Context): Promise<void> {
    ctx.status = 410;
    const title = 'This link is over';
    const signInUrl = await waiting.path(ctx);
    await host.render(ctx, 'password-link-over', { title, signInUrl, forgotPasswordUrl });
  }

  /** To the sign-in, of an authorization that waits for it where there is one. */
  async function leadOn(ctx: Context, { email }: Account): Promise<void> {
    const form = await keptForms.keep(ctx, email, undefined);
    const query = form ? `?form=${form}` : '';
    await host.notices.tell(ctx, `${await waiting.path(ctx)}${query}`, SET);
  }

  /** Looking does not use the link up, for mail programs look as well. */
  const show = (ctx: Context): Promise<void> => draw(ctx, String(ctx.query.token ?? ''));

  async function submit(ctx: Context): Promise<void> {
    const form = formOf(ctx);
    const token = form.get('token') ?? '';
    const isEndingConnections = form.get('end_connections') === 'yes';
    const origin = originOf(ctx);
    try {
      const password = form.get('new_password') ?? '';
      const ending = isEndingConnections ? endConnections(disconnect, origin) : undefined;
      const changed = await changes.changeByLink(token, password, origin, ending);
      if (!changed) return await sayOver(ctx);
      // However many strangers guess, whoever got the link can now sign in here.
      devices.remember(ctx, changed);
      parts.mail?.tell(changed.id, 'password_changed', fromOf(ctx));
      await leadOn(ctx, changed);
    } catch (error) {
      if (error instanceof TooManyPasswords)
        return await draw(ctx, token, { problem: sayBusy(ctx, error), isEndingConnections });
      if (!(error instanceof Refusal)) throw error;
      ctx.status = 422;
      await draw(ctx, token, { problem: error.remedy, isEndingConnections });
    }
  }

  return [get('/password', show), post('/password', ...parts.steps.form, submit)];
}
