/** `/password`: where a one-time link leads, to set a password. */
import type { Context } from 'koa';
import type { PasswordChanges } from '../accounts/password-changes.ts';
import type { PasswordLinks } from '../accounts/password-links.ts';
import { TooManyPasswords } from '../accounts/password-work.ts';
import { formOf } from '../provider/form.ts';
import { Refusal } from '../refusal.ts';
import type { KnownDevices } from './known-devices.ts';
import { originOf, type PageHost, seeOther } from './page.ts';
import { sayBusy } from './password-check.ts';

export interface PasswordParts {
  readonly host: PageHost;
  readonly links: PasswordLinks;
  readonly changes: PasswordChanges;
  readonly devices: KnownDevices;
  /** Absent where no mail is sent. */
  readonly forgotPasswordUrl: string | undefined;
}

/** The token comes in the query, which is never logged, and goes on in the form. */
export function passwordPage(parts: PasswordParts) {
  const { host, links, changes, devices, forgotPasswordUrl } = parts;

  async function draw(ctx: Context, token: string, problem?: string): Promise<void> {
    const link = await links.find(token);
    if (!link) return sayOver(ctx);
    await host.render(ctx, 'password', {
      heading: link.purpose === 'invitation' ? 'Set your password' : 'Choose a new password',
      email: link.account.email,
      action: ctx.path,
      formToken: host.formToken(ctx),
      token,
      problem,
    });
  }

  /** Used, expired and never made look the same. */
  async function sayOver(ctx: Context): Promise<void> {
    ctx.status = 410;
    const title = 'This link is over';
    await host.render(ctx, 'password-link-over', { title, forgotPasswordUrl });
  }

  return {
    /** `GET /password`: looking does not use the link up, for mail programs look as well. */
    show: (ctx: Context): Promise<void> => draw(ctx, String(ctx.query.token ?? '')),

    /** `POST /password` */
    async submit(ctx: Context): Promise<void> {
      const form = formOf(ctx);
      const token = form.get('token') ?? '';
      try {
        const password = form.get('new_password') ?? '';
        const changed = await changes.changeByLink(token, password, originOf(ctx));
        if (!changed) return await sayOver(ctx);
        // However many strangers guess, whoever got the link can now sign in here.
        devices.remember(ctx, changed);
        seeOther(ctx, '/login?done=password-set');
      } catch (error) {
        if (error instanceof TooManyPasswords) return await draw(ctx, token, sayBusy(ctx, error));
        if (!(error instanceof Refusal)) throw error;
        ctx.status = 422;
        await draw(ctx, token, error.remedy);
      }
    },
  };
}
