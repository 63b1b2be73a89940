/** `/profile/oauth-clients/offers/:offer`: a user takes over a client of another user, or declines. */
import type { Context, Next } from 'koa';
import type { Activity, NewActivity } from '../../accounts/activity/activity.ts';
import { Refusal } from '../../base/refusal.ts';
import { requestState } from '../../base/request-state.ts';
import { redirectHosts } from '../../clients/client.ts';
import type { ClientOffer } from '../../clients/client-offers.ts';
import type { ClientProblems } from '../../clients/client-problems.ts';
import type { ClientRegistry } from '../../clients/client-registry.ts';
import { originInSession, seeOther } from '../page.ts';
import type { PageKit } from '../page-kit.ts';
import { get, post, type Route } from '../routes.ts';
import { accountOf } from '../signed-in.ts';
import { type Moment, momentOrNothing, toMoment } from '../words/moment.ts';
import { LIST, urlOf } from './own-client.ts';

declare module '../view-data.ts' {
  interface ViewData {
    readonly 'oauth-client-offer': {
      readonly problem: string | undefined;
      readonly name: string;
      readonly from: AccountSummary;
      readonly until: Moment;
      readonly hosts: readonly string[];
      readonly created: Moment;
      readonly lastUsed: Moment | undefined;
      readonly connectedPeople: number;
      readonly secrets: number;
      /** Number of refused requests in the last days. */
      readonly problems: number;
      readonly isVerified: boolean;
      readonly action: string;
      readonly declineUrl: string;
    };
  }
}

const OFFER = `${LIST}/offers/:offer`;
const DECLINE = `${OFFER}/decline`;
const OVER = 'That offer is not open any more: it was answered or withdrawn, or it has expired.';
const TAKEN = 'The client is yours now.';
const DECLINED = 'The offer is declined.';

export const offerUrl = ({ id }: Pick<ClientOffer, 'id'>): string => `${LIST}/offers/${id}`;

/** Returns an entry for the activity log of the other party to an offer, who did not act. */
export const entryFor = (
  accountId: string,
  action: NewActivity['action'],
  { clientId, clientName }: Pick<ClientOffer, 'clientId' | 'clientName'>,
  details: NewActivity['details'],
): NewActivity => ({
  action,
  actor: 'service',
  accountId,
  details: { client_id: clientId, client_name: clientName, ...details },
});

const offers = requestState<ClientOffer>('requireOffer');

export function clientOfferPage(parts: {
  readonly kit: PageKit;
  readonly clients: ClientRegistry;
  readonly clientProblems: ClientProblems;
  readonly activity: Pick<Activity, 'record'>;
  /** The maximum number of clients per user. */
  readonly limit: number;
}): Route[] {
  const { kit, clients, clientProblems, activity, limit } = parts;

  const showOver = (ctx: Context): Promise<void> => kit.notices.redirect(ctx, LIST, OVER);

  /** Continues if the offer is open and is for this user. Any other id gets the same answer. */
  async function requireOffer(ctx: Context, next: Next): Promise<void> {
    const offer = await clients.findOfferTo(accountOf(ctx).id, String(ctx.params.offer));
    if (!offer) return showOver(ctx);
    offers.set(ctx, offer);
    await next();
  }

  async function draw(ctx: Context, problem?: string): Promise<void> {
    const offer = offers.get(ctx);
    const client = await clients.findByOwner(offer.fromAccountId, offer.clientId);
    if (!client) return showOver(ctx);
    const counts = await clientProblems.countsOf([client.id]);
    await kit.render(ctx, 'oauth-client-offer', {
      problem,
      name: client.name,
      from: { name: offer.fromName, email: offer.fromEmail },
      until: toMoment(offer.expiresAt),
      hosts: redirectHosts(client),
      created: toMoment(client.createdAt),
      lastUsed: momentOrNothing(client.lastUsedAt),
      connectedPeople: client.connectedPeople,
      secrets: client.secrets.length,
      problems: counts.get(client.id) ?? 0,
      isVerified: client.isVerified,
      action: offerUrl(offer),
      declineUrl: `${offerUrl(offer)}/decline`,
    });
  }

  async function takeOver(ctx: Context): Promise<void> {
    const offer = offers.get(ctx);
    const { clientId, clientName, fromAccountId, fromName } = offer;
    const { id: accountId, name } = accountOf(ctx);
    const about = { client_id: clientId, client_name: clientName };
    const taken = { handover: 'taken', by_account_id: fromAccountId, by_name: fromName };
    const given = { handover: 'given', person_id: accountId, person_name: name };
    try {
      await clients.acceptOffer(accountId, offer, limit, async (tx) => {
        const by = { action: 'client_transferred', actor: 'person', accountId } as const;
        const details = { ...about, ...taken };
        await activity.record({ ...by, details, origin: originInSession(ctx) }, tx);
        await activity.record(entryFor(fromAccountId, 'client_transferred', offer, given), tx);
      });
      await kit.notices.redirect(ctx, urlOf({ id: clientId }), TAKEN);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      if (error.code === 'offer_over') return showOver(ctx);
      ctx.status = 422;
      await draw(ctx, `${error.message} ${error.remedy}`);
    }
  }

  async function decline(ctx: Context): Promise<void> {
    const offer = offers.get(ctx);
    const entry = entryFor(offer.fromAccountId, 'client_changed', offer, { offer: 'declined' });
    const isEnded = await clients.endOffer(accountOf(ctx).id, offer, async (tx) => {
      const origin = originInSession(ctx);
      const own = { actor: 'person', accountId: accountOf(ctx).id, origin } as const;
      await activity.record({ ...entry, ...own }, tx);
      await activity.record(entry, tx);
    });
    if (!isEnded) return showOver(ctx);
    await kit.notices.redirect(ctx, LIST, DECLINED);
  }

  const show = (ctx: Context): Promise<void> => draw(ctx);

  const backToOffer = (ctx: Context): void => seeOther(ctx, offerUrl(offers.get(ctx)));

  return [
    get(OFFER, kit.requireSignedIn, requireOffer, show),
    post(OFFER, ...kit.ownForm(), requireOffer, kit.requireRecentSignIn, takeOver),
    get(DECLINE, kit.requireSignedIn, requireOffer, backToOffer),
    post(DECLINE, ...kit.ownForm(), requireOffer, decline),
  ];
}
