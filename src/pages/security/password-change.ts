/** Changes the password of a signed-in user and, if asked to, ends the user's connections. */
import type { Context } from 'koa';
import type { PasswordChanges } from '../../accounts/password-links/password-changes.ts';
import { TooManyPasswords } from '../../accounts/passwords/work.ts';
import { type Disconnect, endConnections } from '../../authorizations/endings.ts';
import { isMessage, type Message, message } from '../../base/message.ts';
import { Refusal } from '../../base/refusal.ts';
import { formOf } from '../../provider/form.ts';
import { originInSession } from '../page.ts';
import type { BrowserSignIns } from '../sign-in/browser-sign-ins.ts';
import { isPaused, type PasswordCheck, passwordProblem, sayBusy } from '../sign-in/password-check.ts';
import { accountOf } from '../signed-in.ts';

/** The problem of each field, and whether the box to end connections was ticked. */
export interface RefusedPassword {
  readonly current?: Message;
  readonly new?: Message;
  readonly isEndingConnections?: boolean;
}

/** Returns a notice for the user, or the problems. Sets the status only to 429 or 503. */
export type ChangePassword = (ctx: Context) => Promise<Message | RefusedPassword>;

export function createPasswordChange(parts: {
  readonly checkPassword: PasswordCheck;
  readonly passwordChanges: Pick<PasswordChanges, 'change'>;
  readonly disconnect: Disconnect;
  readonly signIns: Pick<BrowserSignIns, 'keep'>;
}): ChangePassword {
  const { checkPassword, passwordChanges, disconnect, signIns } = parts;

  return async (ctx) => {
    const account = accountOf(ctx);
    const form = formOf(ctx);
    const isEndingConnections = form.get('end_connections') === 'yes';
    const password = form.get('current_password') ?? '';
    const { email, id: accountId } = account;
    // Ask even after a recent sign-in: a stolen session must not be able to change the password.
    const checked = await checkPassword(ctx, { email, password, accountId });
    if (isMessage(checked)) {
      const current = isPaused(ctx) ? checked : message('security.wrong-password');
      return { current, isEndingConnections };
    }
    try {
      const origin = originInSession(ctx);
      const newPassword = form.get('new_password') ?? '';
      const ending = isEndingConnections ? endConnections(disconnect, origin) : undefined;
      const changed = await passwordChanges.change(account, newPassword, origin, ending);
      await signIns.keep(ctx, changed, { what: 'password_changed' });
      return message('security.password-changed', { disconnected: String(isEndingConnections) });
    } catch (error) {
      if (!(error instanceof Refusal || error instanceof TooManyPasswords)) throw error;
      const problem = error instanceof Refusal ? passwordProblem(error) : sayBusy(ctx, error);
      return { new: problem, isEndingConnections };
    }
  };
}
