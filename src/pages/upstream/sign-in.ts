/** `/login/<provider>`: redirects users to an identity provider and handles its callback. */
import type { Context } from 'koa';
import type { Logger } from 'pino';
import type { Identities } from '../../accounts/identities/identities.ts';
import { canBeStrong } from '../../accounts/sign-in-strength.ts';
import type { Clock } from '../../base/clock.ts';
import { randomId } from '../../base/random-id.ts';
import { ENDPOINT } from '../../provider/endpoints.ts';
import { UpstreamAway, UpstreamRefusal } from '../../upstream/failures.ts';
import { newFlow, type UpstreamPerson, type UpstreamProvider } from '../../upstream/upstream-provider.ts';
import type { ErrorPage } from '../error-page/error-page.ts';
import { type Notices, seeOther } from '../page.ts';
import {
  CHOOSE,
  type NamedProvider,
  type Purpose,
  type UpstreamOutcomes,
  type UpstreamSignIns,
} from '../sign-in/upstream-providers.ts';
import type { Arrive } from './arrival.ts';
import type { UpstreamFlows } from './flows.ts';
import type { NextPerson } from './next-person.ts';
import { cancelledNotice, flowExpired, providerUnavailable, signInFailed, signInRefused, TOO_MANY } from './words.ts';

export function createUpstreamSignIns(parts: {
  readonly clock: Clock;
  readonly log: Logger;
  readonly providers: readonly UpstreamProvider[];
  readonly passwords: boolean;
  readonly flows: UpstreamFlows;
  readonly nextPerson: NextPerson;
  readonly arrive: Arrive;
  readonly identities: Pick<Identities, 'listOf'>;
  readonly errorPage: Pick<ErrorPage, 'say'>;
  readonly notices: Pick<Notices, 'redirect'>;
  readonly outcomes: UpstreamOutcomes;
}): UpstreamSignIns {
  const { clock, log, providers, flows, nextPerson, arrive, errorPage, notices, outcomes } = parts;
  const settingsOfAll = providers.map(({ settings }) => settings);
  const named = settingsOfAll.map(({ id, label }): NamedProvider => ({ id, label }));
  const [first] = named;
  const hasOthers = parts.passwords || named.length > 1;
  const only = hasOthers ? undefined : first;
  outcomes.providersKnown(named.map(({ id }) => id));

  async function begin(ctx: Context, id: string, purpose: Purpose): Promise<void> {
    const provider = providers.find(({ settings }) => settings.id === id);
    if (!provider) ctx.throw(404);
    const over = await flows.begin(ctx);
    if (over) {
      ctx.set('Retry-After', String(over.seconds));
      return errorPage.say(ctx, 429, TOO_MANY);
    }
    const state = randomId('', 43);
    // A re-authentication must prove that the user is present, for which a session at the provider is not enough.
    const { isFresh, loginHint } = purpose.to === 'sign in' ? purpose : { isFresh: true };
    const flow = newFlow(clock, { isFresh, asksWho: nextPerson.isAsked(ctx, id) });
    try {
      const url = await provider.begin({ state, flow, loginHint });
      await flows.keep(ctx, state, { provider: id, flow, purpose });
      seeOther(ctx, url.href);
    } catch (error) {
      await flows.cancel(ctx);
      await showFailure(ctx, { provider, error, purpose });
    }
  }

  const finishing = (provider: UpstreamProvider) =>
    async function finish(ctx: Context): Promise<void> {
      const { id, label } = provider.settings;
      const started = await flows.take(ctx, id);
      if (!started) {
        outcomes.cameFromUpstream(id, 'failed');
        return errorPage.say(ctx, 400, flowExpired(label, hasOthers));
      }
      const { flow, purpose, state } = started;
      const hasAsked = flow.isFresh || flow.asksWho === true;
      // Begin again after a sign-out in another tab: the provider may have used the session of the previous user.
      if (nextPerson.isAsked(ctx, id) && !hasAsked) return begin(ctx, id, purpose);
      try {
        const query = new URLSearchParams(ctx.querystring);
        const person = await provider.finish(query, { ...flow, state });
        nextPerson.wasAsked(ctx, id);
        const { settings } = provider;
        await arrive(ctx, settings, { person, purpose }, (reason) =>
          showRefusal(ctx, settings, { person, purpose, reason }),
        );
      } catch (error) {
        await showFailure(ctx, { provider, error, purpose });
      }
    };

  async function showRefusal(
    ctx: Context,
    { id, label }: NamedProvider,
    { person, purpose, reason }: { person: UpstreamPerson; purpose: Purpose; reason: string },
  ): Promise<void> {
    outcomes.cameFromUpstream(id, 'refused');
    nextPerson.ask(ctx, id);
    // Log the subject, with which the operator can link the identity to an account.
    const about = { provider: id, issuer: person.issuer, subject: person.subject, reason };
    log.warn({ requestId: ctx.state.requestId, ...about }, 'a sign-in with a provider was refused');
    await errorPage.say(ctx, 403, signInRefused(reason, label, retryUrl(purpose)));
  }

  async function showFailure(
    ctx: Context,
    { provider, error, purpose }: { provider: UpstreamProvider; error: unknown; purpose: Purpose },
  ): Promise<void> {
    const { id, label } = provider.settings;
    const about = { requestId: ctx.state.requestId, provider: id };
    const href = retryUrl(purpose);
    if (error instanceof UpstreamAway) {
      outcomes.cameFromUpstream(id, 'unavailable');
      log.warn({ ...about, why: error.message }, 'a sign-in provider does not answer');
      ctx.set('Retry-After', '30');
      return errorPage.say(ctx, 503, providerUnavailable(label, href, hasOthers));
    }
    if (!(error instanceof UpstreamRefusal)) throw error;
    outcomes.cameFromUpstream(id, outcomeOf(error));
    const { reason } = error;
    if (reason === 'misconfigured') {
      log.error({ ...about, reason, why: error.message, remedy: CLIENT_REMEDY }, CLIENT_REFUSED);
      return errorPage.say(ctx, 503, signInFailed('misconfigured', label, href));
    }
    log.warn({ ...about, reason, why: error.message }, 'a sign-in with a provider failed');
    if (reason === 'cancelled') return notices.redirect(ctx, href, cancelledNotice(label, purpose));
    return errorPage.say(ctx, 403, signInFailed('invalid', label, href));
  }

  /** Handles a portal's link. Redirects to the provider if it is the only sign-in method, otherwise to `/login`. */
  const directLink = (provider: NamedProvider) =>
    function beginHere(ctx: Context): Promise<void> | void {
      if (only?.id !== provider.id) return seeOther(ctx, '/login');
      return begin(ctx, provider.id, { to: 'sign in', target: '/profile', isFresh: false });
    };

  return {
    providers: named,
    strongMethods: settingsOfAll.filter(canBeStrong).map(({ id, label }) => ({ id, label })),
    only,
    askWho: (ctx) => nextPerson.ask(ctx),
    asksWho: nextPerson.isAsked,
    begin,

    async listMethods({ id }) {
      const linkedWith = await parts.identities.listOf(id);
      const issuers = linkedWith.map((identity) => identity.issuer);
      const own = providers.filter(({ settings }) => issuers.includes(settings.issuer));
      return own.map(({ settings }) => ({ id: settings.id, label: settings.label }));
    },

    answers: providers.map((provider) => {
      const { id, label } = provider.settings;
      return { id, begin: directLink({ id, label }), finish: finishing(provider) };
    }),
  };
}

const outcomeOf = ({ reason }: UpstreamRefusal): 'cancelled' | 'misconfigured' | 'failed' =>
  reason === 'cancelled' || reason === 'misconfigured' ? reason : 'failed';

const CLIENT_REFUSED = 'a provider does not accept our client ID or secret';
const CLIENT_REMEDY =
  'compare client_id and client_secret_file of this provider in sign_in.providers with what is ' +
  'registered there; `npm run operator -- doctor` tries them';

function retryUrl(purpose: Purpose): string {
  if (purpose.to !== 'sign in') return purpose.target;
  const { interaction, target } = purpose;
  if (interaction !== undefined) return `${ENDPOINT.interaction}/${interaction}?${CHOOSE}=yes`;
  const [path = '', form] = target.split('?');
  const query = new URLSearchParams(form);
  query.set('return_to', path);
  query.set(CHOOSE, 'yes');
  return `/login?${query}`;
}
