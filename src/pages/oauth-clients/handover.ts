/** `/profile/oauth-clients/:id/handover` and `/offers/:offer`: an owner offers a client to another user. */

import type { Context, Next } from 'koa';
import type { AccountRegistry } from '../../accounts/account-registry.ts';
import type { Activity, NewActivity } from '../../accounts/activity/activity.ts';
import { emailKey, normalizeEmail } from '../../accounts/email.ts';
import type { AccountMail } from '../../accounts/mail/account-mail.ts';
import type { AttemptLimit } from '../../base/attempt-limits.ts';
import { Refusal } from '../../base/refusal.ts';
import { requestState } from '../../base/request-state.ts';
import type { Text } from '../../base/texts.ts';
import { redirectHosts } from '../../clients/client.ts';
import { type ClientOffer, OFFER_DAYS } from '../../clients/client-offers.ts';
import type { ClientRegistry } from '../../clients/client-registry.ts';
import { formOf } from '../../provider/form.ts';
import { originInSession, seeOther } from '../page.ts';
import type { PageKit } from '../page-kit.ts';
import { get, post, type Redraw, type Route } from '../routes.ts';
import { accountOf, NOTHING_SENT, typedOf } from '../signed-in.ts';
import { type Moment, momentOrNothing, toMoment } from '../words/moment.ts';
import {
  CLIENT,
  LIST,
  type OwnClientPages,
  ownClientOf,
  type Transaction,
  urlOf,
} from './own-client.ts';

declare module '../view-data.ts' {
  interface ViewData {
    readonly 'oauth-client-handover': {
      readonly client: { readonly name: string; readonly url: string };
      readonly notice: Text | undefined;
      readonly action: string;
      /** The email address that the owner entered. */
      readonly email: string;
      readonly problem: Text | undefined;
      readonly connectedPeople: number;
      readonly days: number;
      /** The open offer, if there is one. */
      readonly offer: { readonly email: string; readonly until: Moment } | undefined;
    };
    readonly 'oauth-client-offer': {
      readonly notice: Text | undefined;
      readonly problem: Text | undefined;
      readonly name: string;
      readonly from: AccountSummary;
      readonly until: Moment;
      readonly hosts: readonly string[];
      readonly created: Moment;
      readonly lastUsed: Moment | undefined;
      readonly connectedPeople: number;
      readonly secrets: number;
      /** Number of open problems of the last days. */
      readonly problems: number;
      readonly isVerified: boolean;
      readonly action: string;
    };
  }
}

const PATH = `${CLIENT}/handover`;
const WITHDRAW = `${PATH}/withdraw`;
const OFFER = `${LIST}/offers/:offer`;
const DECLINE = `${OFFER}/decline`;
const FIELD = 'new_owner_email';
/** The same text for every address, so that it does not reveal whether an account exists. */
const OFFERED = 'The client is offered. It stays yours until the offer is accepted.';
const WITHDRAWN = 'The offer is withdrawn.';
const TOO_MANY = 'You offered clients too often in the last hour. Try again later.';
const OVER =
  'That offer is not open any more: it was answered or withdrawn, it has expired, or the client was changed.';
const TAKEN = 'The client is yours now.';
const DECLINED = 'The offer is declined.';

export const handoverUrl = (client: { readonly id: string }): string => `${urlOf(client)}/handover`;
export const offerUrl = ({ id }: Pick<ClientOffer, 'id'>): string => `${LIST}/offers/${id}`;

const offers = requestState<ClientOffer>('requireOffer');

/** One step of a handover, as the logs of both parties have it. */
interface Step {
  readonly action?: 'client_changed' | 'client_transferred';
  readonly client: Pick<ClientOffer, 'clientId' | 'clientName'>;
  /** For the log of the acting user. */
  readonly own: NewActivity['details'];
  /** Null if the address of the offer has no account. */
  readonly other: string | null;
  /** For the log of the other party; absent if it is the same. */
  readonly theirs?: NewActivity['details'];
}

export function clientHandoverPages(parts: {
  readonly kit: PageKit;
  readonly own: OwnClientPages;
  readonly clients: ClientRegistry;
  readonly accounts: Pick<AccountRegistry, 'findByEmail'>;
  readonly activity: Pick<Activity, 'record'>;
  /** Undefined if the service sends no mail. */
  readonly mail: Pick<AccountMail, 'offerClient'> | undefined;
  /** Limits per owner how much mail a user can cause, and how many addresses they can guess. */
  readonly perOwner: AttemptLimit;
  /** The maximum number of clients per user. */
  readonly limit: number;
}): Route[] {
  const { kit, own, clients, accounts, activity, mail, perOwner, limit } = parts;

  async function record(
    ctx: Context,
    { action = 'client_changed', client, own, other, theirs = own }: Step,
    tx: Transaction,
  ): Promise<void> {
    const about = { client_id: client.clientId, client_name: client.clientName };
    const by = { action, actor: 'person', accountId: accountOf(ctx).id } as const;
    const origin = originInSession(ctx);
    await activity.record({ ...by, details: { ...about, ...own }, origin }, tx);
    if (other === null) return;
    const details = { ...about, ...theirs };
    await activity.record({ action, actor: 'service', accountId: other, details }, tx);
  }

  const emailIn = (form = new URLSearchParams()): string => form.get(FIELD) ?? '';

  async function draw(ctx: Context, email: string, problem?: Text): Promise<void> {
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
    });
  }

  function drawProblem(ctx: Context, status: number, problem: Text): Promise<void> {
    ctx.status = status;
    return draw(ctx, emailIn(formOf(ctx)), problem);
  }

  const redraw: Redraw = {
    isForEverybody: false,
    draw: (ctx, problem) =>
      own.requireOwnClient(ctx, () => draw(ctx, emailIn(formOf(ctx)), problem)),
  };

  const show = (ctx: Context): Promise<void> => draw(ctx, emailIn(typedOf(ctx)));

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
    const { id, name: clientName } = ownClientOf(ctx);
    const { id: ownerAccountId, name } = accountOf(ctx);
    if (await perOwner.count(ownerAccountId)) return drawProblem(ctx, 429, TOO_MANY);
    const email = normalizeEmail(emailIn(formOf(ctx))) ?? '';
    const accountId = (await accounts.findByEmail(email))?.id;
    const step: Step = {
      client: { clientId: id, clientName },
      own: { offer: 'made' },
      other: accountId ?? null,
      theirs: { offer: 'received', by_account_id: ownerAccountId, by_name: name },
    };
    try {
      const to = { email, accountId };
      const made = await clients.offer({ id, ownerAccountId }, to, (tx) => record(ctx, step, tx));
      if (made?.toAccountId) mail?.offerClient(made.toAccountId, { ...made, path: offerUrl(made) });
      await kit.notices.redirect(ctx, handoverUrl({ id }), OFFERED);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      await drawProblem(ctx, 422, `${error.message} ${error.remedy}`);
    }
  }

  const endOffer = (ctx: Context, client: ClientOffer, how: string, other: string | null) =>
    clients.endOffer(accountOf(ctx).id, client, (tx) =>
      record(ctx, { client, own: { offer: how }, other }, tx),
    );

  async function withdraw(ctx: Context): Promise<void> {
    const { id } = ownClientOf(ctx);
    const open = await clients.findOfferOf(id);
    if (open) await endOffer(ctx, open, 'withdrawn', open.toAccountId);
    await kit.notices.redirect(ctx, handoverUrl({ id }), WITHDRAWN);
  }

  const backToHandover = (ctx: Context): void => seeOther(ctx, handoverUrl(ownClientOf(ctx)));

  const showOver = (ctx: Context): Promise<void> => kit.notices.redirect(ctx, LIST, OVER);

  /** Continues if the offer is open and is for this user. Any other id gets the same answer. */
  async function requireOffer(ctx: Context, next: Next): Promise<void> {
    const offer = await clients.findOfferTo(accountOf(ctx).id, String(ctx.params.offer));
    if (!offer) return showOver(ctx);
    offers.set(ctx, offer);
    await next();
  }

  async function drawOffer(ctx: Context, problem?: Text): Promise<void> {
    const offer = offers.get(ctx);
    const client = await clients.findByOwner(offer.fromAccountId, offer.clientId);
    if (!client) return showOver(ctx);
    await kit.render(ctx, 'oauth-client-offer', {
      notice: await kit.notices.take(ctx),
      problem,
      name: client.name,
      from: { name: offer.fromName, email: offer.fromEmail },
      until: toMoment(offer.expiresAt),
      hosts: redirectHosts(client),
      created: toMoment(client.createdAt),
      lastUsed: momentOrNothing(client.lastUsedAt),
      connectedPeople: client.connectedPeople,
      secrets: client.secrets.length,
      problems: await own.problemCount(client),
      isVerified: client.isVerified,
      action: offerUrl(offer),
    });
  }

  async function takeOver(ctx: Context): Promise<void> {
    const client = offers.get(ctx);
    const { clientId: id, fromAccountId, fromName } = client;
    const { id: accountId, name } = accountOf(ctx);
    const step: Step = {
      action: 'client_transferred',
      client,
      own: { handover: 'taken', by_account_id: fromAccountId, by_name: fromName },
      other: fromAccountId,
      theirs: { handover: 'given', person_id: accountId, person_name: name },
    };
    try {
      await clients.acceptOffer(accountId, client, limit, (tx) => record(ctx, step, tx));
      await kit.notices.redirect(ctx, urlOf({ id }), TAKEN);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      if (error.code === 'offer_over') return showOver(ctx);
      ctx.status = 422;
      await drawOffer(ctx, `${error.message} ${error.remedy}`);
    }
  }

  async function decline(ctx: Context): Promise<void> {
    const offer = offers.get(ctx);
    const isEnded = await endOffer(ctx, offer, 'declined', offer.fromAccountId);
    await kit.notices.redirect(ctx, LIST, isEnded ? DECLINED : OVER);
  }

  const showOffer = (ctx: Context): Promise<void> => drawOffer(ctx);

  const backToOffer = (ctx: Context): void => seeOther(ctx, offerUrl(offers.get(ctx)));

  return [
    get(PATH, ...own.page, show),
    post(PATH, ...own.form(redraw), check, kit.requireRecentSignIn, offer),
    get(WITHDRAW, ...own.page, backToHandover),
    post(WITHDRAW, ...own.form(), withdraw),
    get(OFFER, kit.requireSignedIn, requireOffer, showOffer),
    post(OFFER, ...kit.ownForm(), requireOffer, kit.requireRecentSignIn, takeOver),
    get(DECLINE, kit.requireSignedIn, requireOffer, backToOffer),
    post(DECLINE, ...kit.ownForm(), requireOffer, decline),
  ];
}
