/** `/profile/oauth-clients/:id/handover`: an owner offers a client to another user. */
import type { Context, Next } from 'koa';
import type { AccountRegistry } from '../../accounts/account-registry.ts';
import type { Activity } from '../../accounts/activity/activity.ts';
import { emailKey, normalizeEmail } from '../../accounts/email.ts';
import type { AccountMail } from '../../accounts/mail/account-mail.ts';
import type { AttemptLimit } from '../../base/attempt-limits.ts';
import { Refusal } from '../../base/refusal.ts';
import { OFFER_DAYS } from '../../clients/client-offers.ts';
import type { ClientRegistry } from '../../clients/client-registry.ts';
import { formOf } from '../../provider/form.ts';
import { seeOther } from '../page.ts';
import type { PageKit } from '../page-kit.ts';
import { get, post, type Redraw, type Route } from '../routes.ts';
import { accountOf, NOTHING_SENT, typedOf } from '../signed-in.ts';
import { type Moment, toMoment } from '../words/moment.ts';
import { entryFor, offerUrl } from './offers.ts';
import { CLIENT, type OwnClientPages, ownClientOf, urlOf } from './own-client.ts';

declare module '../view-data.ts' {
  interface ViewData {
    readonly 'oauth-client-handover': {
      readonly client: { readonly name: string; readonly url: string };
      readonly notice: string | undefined;
      readonly action: string;
      /** The email address that the owner entered. */
      readonly email: string;
      readonly problem: string | undefined;
      readonly connectedPeople: number;
      readonly days: number;
      /** The open offer, if there is one. */
      readonly offer: { readonly email: string; readonly until: Moment } | undefined;
      readonly withdrawUrl: string;
    };
  }
}

const PATH = `${CLIENT}/handover`;
const WITHDRAW = `${PATH}/withdraw`;
const FIELD = 'new_owner_email';
/** The same for every address, so that it does not reveal whether an account exists. */
const OFFERED = 'The client is offered. It stays yours until the offer is accepted.';
const WITHDRAWN = 'No offer of this client is open any more.';
const TOO_MANY = 'You offered clients too often in the last hour. Try again later.';

export const handoverUrl = (client: { readonly id: string }): string => `${urlOf(client)}/handover`;

export function clientHandoverPage(parts: {
  readonly kit: PageKit;
  readonly own: OwnClientPages;
  readonly clients: ClientRegistry;
  readonly accounts: Pick<AccountRegistry, 'findByEmail'>;
  readonly activity: Pick<Activity, 'record'>;
  /** Undefined if the service sends no mail. */
  readonly mail: Pick<AccountMail, 'offerClient'> | undefined;
  /** Per owner: limits the mail that one user can cause, and guesses of addresses. */
  readonly perOwner: AttemptLimit;
}): Route[] {
  const { kit, own, clients, accounts, activity, mail, perOwner } = parts;

  const emailIn = (form: URLSearchParams): string => form.get(FIELD) ?? '';

  async function draw(ctx: Context, email = '', problem?: string): Promise<void> {
    const client = ownClientOf(ctx);
    const offer = await clients.findOfferOf(client.id);
    await kit.render(ctx, 'oauth-client-handover', {
      client: { name: client.name, url: urlOf(client) },
      notice: typedOf(ctx) ? NOTHING_SENT : await kit.notices.take(ctx),
      action: handoverUrl(client),
      email,
      problem,
      connectedPeople: client.connectedPeople,
      days: OFFER_DAYS,
      offer: offer && { email: offer.email, until: toMoment(offer.expiresAt) },
      withdrawUrl: `${handoverUrl(client)}/withdraw`,
    });
  }

  function drawProblem(ctx: Context, status: number, problem: string): Promise<void> {
    ctx.status = status;
    return draw(ctx, emailIn(formOf(ctx)), problem);
  }

  const redraw: Redraw = {
    isForEverybody: false,
    draw: (ctx, problem) =>
      own.requireOwnClient(ctx, () => draw(ctx, emailIn(formOf(ctx)), problem)),
  };

  const show = (ctx: Context): Promise<void> =>
    draw(ctx, emailIn(typedOf(ctx) ?? new URLSearchParams()));

  /** Continues if the address belongs to another user or to no account at all. */
  async function check(ctx: Context, next: Next): Promise<void> {
    const email = normalizeEmail(emailIn(formOf(ctx)));
    if (email === undefined) {
      return drawProblem(ctx, 422, 'Enter an email address, like ada@example.com.');
    }
    if (emailKey(email) === emailKey(accountOf(ctx).email)) {
      return drawProblem(ctx, 422, 'This is your own address. Enter that of the new owner.');
    }
    return next();
  }

  async function offer(ctx: Context): Promise<void> {
    const { id: clientId, name: clientName } = ownClientOf(ctx);
    const { id: ownerAccountId, name } = accountOf(ctx);
    if (await perOwner.count(ownerAccountId)) return drawProblem(ctx, 429, TOO_MANY);
    const email = normalizeEmail(emailIn(formOf(ctx))) ?? '';
    const accountId = (await accounts.findByEmail(email))?.id;
    try {
      const client = { id: clientId, ownerAccountId };
      const made = await clients.offer(client, { email, accountId }, async (tx) => {
        await own.record(ctx, 'client_changed', { offer: 'made' }, tx);
        if (accountId === undefined) return;
        const details = { offer: 'received', by_account_id: ownerAccountId, by_name: name };
        const about = { clientId, clientName };
        await activity.record(entryFor(accountId, 'client_changed', about, details), tx);
      });
      if (made?.toAccountId) mail?.offerClient(made.toAccountId, { ...made, path: offerUrl(made) });
      await kit.notices.redirect(ctx, handoverUrl({ id: clientId }), OFFERED);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      await drawProblem(ctx, 422, `${error.message} ${error.remedy}`);
    }
  }

  async function withdraw(ctx: Context): Promise<void> {
    const { id } = ownClientOf(ctx);
    const open = await clients.findOfferOf(id);
    if (open) {
      const details = { offer: 'withdrawn' };
      await clients.endOffer(accountOf(ctx).id, open, async (tx) => {
        await own.record(ctx, 'client_changed', details, tx);
        const { toAccountId } = open;
        if (toAccountId === null) return;
        await activity.record(entryFor(toAccountId, 'client_changed', open, details), tx);
      });
    }
    await kit.notices.redirect(ctx, handoverUrl({ id }), WITHDRAWN);
  }

  const backToHandover = (ctx: Context): void => seeOther(ctx, handoverUrl(ownClientOf(ctx)));

  return [
    get(PATH, ...own.page, show),
    post(PATH, ...own.form(redraw), check, kit.requireRecentSignIn, offer),
    get(WITHDRAW, ...own.page, backToHandover),
    post(WITHDRAW, ...own.form(), withdraw),
  ];
}
