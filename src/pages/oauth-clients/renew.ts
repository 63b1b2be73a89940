/** `/profile/oauth-clients/:id/renew`: asks for the name, then ends all secrets of a robbed client but a new one. */
import type { Context, Next } from 'koa';
import type { AccountMail } from '../../accounts/mail/account-mail.ts';
import type { OneTimeValues } from '../../accounts/one-time-values.ts';
import { Refusal } from '../../base/refusal.ts';
import type { ClientRegistry } from '../../clients/client-registry.ts';
import { isRenewable } from '../../clients/client-secrets.ts';
import { formOf } from '../../provider/form.ts';
import { sentFormFrom } from '../forms/sent-form.ts';
import { seeOther } from '../page.ts';
import type { PageKit } from '../page-kit.ts';
import { get, post, type Route } from '../routes.ts';
import { accountOf } from '../signed-in.ts';
import { browserDetails } from '../words/browser-details.ts';
import { createNameConfirmation } from './confirm-name.ts';
import { CLIENT, type OwnClientPages, ownClientOf, urlOf } from './own-client.ts';
import type { ShownSecret } from './secrets.ts';

const PATH = `${CLIENT}/renew`;

export function renewClientPage(parts: {
  readonly kit: PageKit;
  readonly own: OwnClientPages;
  readonly clients: Pick<ClientRegistry, 'renew'>;
  readonly oneTimeValues: OneTimeValues;
  readonly mail: AccountMail | undefined;
}): Route[] {
  const { kit, own, clients, oneTimeValues, mail } = parts;
  const confirmation = createNameConfirmation(kit, 'secrets', () => ({
    act: 'Renew',
    lead: 'For a theft: someone may have copied the secrets or the tokens of this client.',
    consequences: [
      'All its secrets, access tokens and authorization codes end at once, and you get one new secret. Nobody has ' +
        'to approve the client again: its refresh tokens work once more, but only together with the new secret.',
      'Until your servers use the new secret, their requests are refused. This cannot be undone.',
    ],
  }));

  async function requireRenewable(ctx: Context, next: Next): Promise<void> {
    if (!isRenewable(ownClientOf(ctx).kind)) ctx.throw(404, 'this client cannot be renewed');
    await next();
  }

  async function submit(ctx: Context): Promise<void> {
    const { id, name } = ownClientOf(ctx);
    const { id: accountId } = accountOf(ctx);
    const sent = sentFormFrom(formOf(ctx), [id]);
    try {
      const { lastFour } = await clients.renew(id, (tx, details) => own.record(ctx, 'client_renewed', details, tx), {
        key: sent.key,
        keep(secret) {
          const shown: ShownSecret = { clientId: id, value: secret.value, isOfNewClient: false, isOnlyOne: true };
          return oneTimeValues.store(accountId, shown, sent.shownAs(secret.lastFour));
        },
      });
      // Also if the form was sent again: the answer to the first one, and its mail, may be lost.
      mail?.notify(accountId, 'client_renewed', { ...browserDetails(ctx), about: name });
      seeOther(ctx, `${urlOf({ id })}/created?once=${sent.shownAs(lastFour)}`);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      ctx.status = 422;
      await confirmation.draw(ctx, name, `${error.message} ${error.remedy}`);
    }
  }

  return [
    get(PATH, ...own.page, requireRenewable, confirmation.show),
    post(PATH, ...own.form(), requireRenewable, confirmation.check, kit.requireRecentSignIn, submit),
  ];
}
