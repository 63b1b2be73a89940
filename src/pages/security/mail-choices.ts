/** The *Mail* section of `/profile/security`: which mails about the account a user wants. */
import type { Context } from 'koa';
import type { Account } from '../../accounts/account.ts';
import type { AccountRegistry } from '../../accounts/account-registry.ts';
import { UNWANTED_MAIL, type UnwantedMail } from '../../accounts/mail/account-mail.ts';
import { type Message, message } from '../../base/message.ts';
import { formOf } from '../../provider/form.ts';
import { backTo } from '../page.ts';
import type { PageKit } from '../page-kit.ts';
import { get, post, SECURITY } from '../routes.ts';
import { accountOf } from '../signed-in.ts';

export interface MailChoice {
  readonly value: UnwantedMail;
  readonly label: Message;
  readonly isWanted: boolean;
}

const PATH = `${SECURITY}/mail`;
const FIELD = 'mail';
const SAVED = message('security.mail-saved');

export type MailChoices = ReturnType<typeof createMailChoices>;

export function createMailChoices(parts: {
  readonly kit: PageKit;
  readonly accounts: Pick<AccountRegistry, 'setUnwantedMail'>;
  readonly sendsMail: boolean;
}) {
  const { kit, accounts, sendsMail } = parts;

  async function chooseMail(ctx: Context): Promise<void> {
    await accounts.setUnwantedMail(accountOf(ctx).id, unwantedIn(formOf(ctx)));
    await kit.notices.redirect(ctx, SECURITY, SAVED);
  }

  return {
    url: PATH,

    /**
     * Undefined if the service sends no mail.
     *
     * @param typed what was typed into this form, or another of the page, before a sign-in
     */
    view({ unwantedMail }: Account, typed: URLSearchParams | undefined): readonly MailChoice[] | undefined {
      const unwanted = typed?.has(FIELD) ? unwantedIn(typed) : unwantedMail;
      return sendsMail ? UNWANTED_MAIL.map((value) => choiceOf(value, unwanted)) : undefined;
    },

    routes: [
      get(PATH, kit.requireSignedIn, backTo(SECURITY)),
      post(PATH, ...kit.ownForm(), kit.requireRecentSignIn, chooseMail),
    ],
  };
}

const unwantedIn = (form: URLSearchParams): UnwantedMail[] =>
  UNWANTED_MAIL.filter((kind) => !form.getAll(FIELD).includes(kind));

const choiceOf = (value: UnwantedMail, unwanted: readonly string[]): MailChoice => ({
  value,
  label: message(`security.mail-${value}`),
  isWanted: !unwanted.includes(value),
});
