/** `/login/<provider>`: people who sign in with an account elsewhere go there and come back here. */
import type { Context } from 'koa';
import type { Logger } from 'pino';
import type { ComeIn } from '../../accounts/identities/coming-in.ts';
import { type Identities, wayIdOf } from '../../accounts/identities/identities.ts';
import { passwordLinkPath } from '../../accounts/passwords/link-mail.ts';
import type { PasswordLinks } from '../../accounts/passwords/links.ts';
import { canBeStrong } from '../../accounts/sign-in-strength.ts';
import type { Clock } from '../../base/clock.ts';
import { randomId } from '../../base/random-id.ts';
import type { BrowserSessions } from '../../provider/browser-sessions.ts';
import { ENDPOINT } from '../../provider/endpoints.ts';
import type { Interactions } from '../../provider/interactions.ts';
import { UpstreamAway, UpstreamRefusal } from '../../upstream/failures.ts';
import { providerOf } from '../../upstream/hint-domains.ts';
import {
  newFlow,
  type UpstreamPerson,
  type UpstreamProvider,
} from '../../upstream/upstream-provider.ts';
import type { ErrorPage } from '../error-page/error-page.ts';
import type { FirstSignIn } from '../first-sign-in/question.ts';
import { type Notices, originOf, seeOther } from '../page.ts';
import type { Demands } from '../sign-in/demands.ts';
import type { RecordSignIn } from '../sign-in/signing-in.ts';
import {
  CHOOSE,
  type Purpose,
  type UpstreamOutcomes,
  type UpstreamSignIns,
  type WayIn,
} from '../sign-in/upstream-ways.ts';
import type { WaitingSignIn } from '../sign-in/waiting-sign-in.ts';
import type { UpstreamFlows } from './flows.ts';
import type { NextPerson } from './next-person.ts';
import type { Confirm, Link } from './own-account.ts';
import {
  CONFIRMED,
  cameBack,
  isAway,
  isLinked,
  isMisconfigured,
  isOver,
  NOT_ENOUGH,
  proves,
  staysOut,
  TOO_MANY,
} from './words.ts';

export function createUpstreamSignIns(parts: {
  readonly clock: Clock;
  readonly log: Logger;
  readonly providers: readonly UpstreamProvider[];
  readonly passwords: boolean;
  readonly flows: UpstreamFlows;
  readonly nextPerson: NextPerson;
  readonly comeIn: ComeIn;
  readonly link: Link;
  readonly confirm: Confirm;
  readonly demands: Pick<Demands, 'met' | 'mayRecover'>;
  readonly passwordLinks: Pick<PasswordLinks, 'make'>;
  readonly identities: Pick<Identities, 'listOf'>;
  readonly sessions: Pick<BrowserSessions, 'signIn'>;
  readonly interactions: Pick<Interactions, 'restartSignedIn'>;
  readonly waiting: Pick<WaitingSignIn, 'end'>;
  readonly notices: Pick<Notices, 'tell'>;
  readonly errorPage: Pick<ErrorPage, 'say'>;
  readonly recordSignIn: RecordSignIn;
  readonly firstSignIn: Pick<FirstSignIn, 'path'>;
  readonly outcomes: UpstreamOutcomes;
}): UpstreamSignIns {
  const { clock, log, providers, flows, nextPerson, errorPage, outcomes } = parts;
  const settingsOfAll = providers.map(({ settings }) => settings);
  const ways = settingsOfAll.map(({ id, label }): WayIn => ({ id, label }));
  const [first] = ways;
  const only = !parts.passwords && ways.length === 1 ? first : undefined;
  outcomes.providersKnown(ways.map(({ id }) => id));

  async function begin(ctx: Context, id: string, purpose: Purpose): Promise<void> {
    const provider = providers.find(({ settings }) => settings.id === id);
    if (!provider) ctx.throw(404);
    const over = await flows.begin(ctx);
    if (over) {
      ctx.set('Retry-After', String(over.seconds));
      return errorPage.say(ctx, 429, TOO_MANY);
    }
    const state = randomId('', 43);
    const { isFresh } = purpose;
    const flow = newFlow(clock, { isFresh, asksWho: nextPerson.isAsked(ctx, id) });
    try {
      const url = await provider.begin({ state, flow, loginHint: purpose.loginHint });
      await flows.keep(ctx, state, { provider: id, flow, purpose });
      seeOther(ctx, url.href);
    } catch (error) {
      await flows.cancel(ctx);
      await sayWhy(ctx, { provider, error, purpose });
    }
  }

  const finishing = (provider: UpstreamProvider) =>
    async function finish(ctx: Context): Promise<void> {
      const { id, label } = provider.settings;
      const began = await flows.take(ctx, id);
      if (!began) {
        outcomes.cameFromUpstream(id, 'failed');
        return errorPage.say(ctx, 400, isOver(label, parts.passwords || ways.length > 1));
      }
      const { flow, purpose, state } = began;
      const hasAsked = flow.isFresh || flow.asksWho === true;
      // Started before a sign-out in another tab: the provider may have let the last person in.
      if (nextPerson.isAsked(ctx, id) && !hasAsked) return begin(ctx, id, purpose);
      try {
        const query = new URLSearchParams(ctx.querystring);
        const person = await provider.finish(query, { ...flow, state });
        nextPerson.wasAsked(ctx, id);
        await letIn(ctx, provider, { person, purpose });
      } catch (error) {
        await sayWhy(ctx, { provider, error, purpose });
      }
    };

  async function letIn(
    ctx: Context,
    { settings }: UpstreamProvider,
    { person, purpose }: { person: UpstreamPerson; purpose: Purpose },
  ): Promise<void> {
    const origin = originOf(ctx);
    if (purpose.links !== undefined) {
      const reason = await parts.link(ctx, settings, { person, accountId: purpose.links });
      if (reason !== undefined) return sayRefused(ctx, settings, { person, purpose, reason });
      outcomes.cameFromUpstream(settings.id, 'succeeded');
      const onward = await parts.demands.met(ctx, person);
      if (onward !== undefined) return seeOther(ctx, onward);
      return parts.notices.tell(ctx, purpose.target, isLinked(settings.label));
    }
    const came =
      purpose.confirms === undefined
        ? await parts.comeIn(settings, person, origin)
        : await parts.confirm(ctx, settings, { person, accountId: purpose.confirms });
    if (typeof came === 'string') {
      return sayRefused(ctx, settings, { person, purpose, reason: came });
    }
    const { account, isNewLink } = 'account' in came ? came : { account: came, isNewLink: false };
    outcomes.cameFromUpstream(settings.id, 'succeeded');
    if (purpose.resets) {
      // It would replace what the person is asked for by what proves less.
      const mayRecover = await parts.demands.mayRecover(account.id, person);
      if (!mayRecover) return parts.notices.tell(ctx, purpose.target, NOT_ENOUGH);
      const { token } = await parts.passwordLinks.make(account, 'confirmed', origin);
      return seeOther(ctx, passwordLinkPath(token));
    }
    await parts.sessions.signIn(ctx, account, person);
    await parts.recordSignIn(ctx, account, { ...settings, isNewLink });
    if (purpose.confirms !== undefined) return leadBack(ctx, purpose);
    const onward = await onwardTo(ctx, purpose);
    const wayId = wayIdOf(person.issuer);
    seeOther(
      ctx,
      isNewLink ? await parts.firstSignIn.path(ctx, account, { wayId, onward }) : onward,
    );
  }

  async function sayRefused(
    ctx: Context,
    { id, label }: WayIn,
    { person, purpose, reason }: { person: UpstreamPerson; purpose: Purpose; reason: string },
  ): Promise<void> {
    outcomes.cameFromUpstream(id, 'refused');
    nextPerson.ask(ctx, id);
    // With the subject: who runs the service can link it.
    const about = { provider: id, issuer: person.issuer, subject: person.subject, reason };
    log.warn({ requestId: ctx.state.requestId, ...about }, 'somebody of a provider stays out');
    await errorPage.say(ctx, 403, staysOut(reason, label, chooseAgain(purpose)));
  }

  async function onwardTo(ctx: Context, { interaction, target }: Purpose): Promise<string> {
    if (interaction === undefined) return target;
    parts.waiting.end(ctx);
    return (await parts.interactions.restartSignedIn(interaction)) ?? target;
  }

  async function leadBack(ctx: Context, { target }: Purpose): Promise<void> {
    // What was typed says it itself.
    if (target.includes('?')) return seeOther(ctx, target);
    await parts.notices.tell(ctx, target, CONFIRMED);
  }

  async function sayWhy(
    ctx: Context,
    {
      provider: {
        settings: { id, label },
      },
      error,
      purpose,
    }: { provider: UpstreamProvider; error: unknown; purpose: Purpose },
  ): Promise<void> {
    const about = { requestId: ctx.state.requestId, provider: id };
    const href = chooseAgain(purpose);
    if (error instanceof UpstreamAway) {
      outcomes.cameFromUpstream(id, 'unavailable');
      log.warn({ ...about, why: error.message }, 'a provider of sign-ins does not answer');
      ctx.set('Retry-After', '30');
      return errorPage.say(ctx, 503, isAway(label, href, parts.passwords || ways.length > 1));
    }
    if (!(error instanceof UpstreamRefusal)) throw error;
    outcomes.cameFromUpstream(id, outcomeOf(error));
    const { reason } = error;
    if (reason === 'misconfigured') {
      log.error({ ...about, reason, why: error.message, remedy: CLIENT_REMEDY }, CLIENT_REFUSED);
      return errorPage.say(ctx, 503, isMisconfigured(label, href));
    }
    log.warn({ ...about, reason, why: error.message }, 'a sign-in with a provider came to nothing');
    return errorPage.say(
      ctx,
      403,
      reason === 'cancelled' ? cameBack(label, href) : proves(label, href),
    );
  }

  /** A link to a provider, as portals have them, is followed where nobody would be asked anyway. */
  const linked = (way: WayIn) =>
    function beginHere(ctx: Context): Promise<void> | void {
      if (only?.id !== way.id) return seeOther(ctx, '/login');
      return begin(ctx, way.id, { target: '/profile', isFresh: false });
    };

  return {
    ways,
    strongWays: settingsOfAll.filter(canBeStrong).map(({ id, label }) => ({ id, label })),
    only,
    askWho: (ctx) => nextPerson.ask(ctx),
    asksWho: nextPerson.isAsked,
    begin,
    hasHints: providers.some(({ settings }) => settings.hintDomains.length > 0),

    wayOf(email) {
      const found = providerOf(email, settingsOfAll);
      return found && { id: found.provider.id, label: found.provider.label, domain: found.domain };
    },

    async waysOf({ id }) {
      const linkedWith = await parts.identities.listOf(id);
      const issuers = linkedWith.map((identity) => identity.issuer);
      const own = providers.filter(({ settings }) => issuers.includes(settings.issuer));
      return own.map(({ settings }) => ({ id: settings.id, label: settings.label }));
    },

    answers: providers.map((provider) => {
      const { id, label } = provider.settings;
      return { id, begin: linked({ id, label }), finish: finishing(provider) };
    }),
  };
}

const outcomeOf = ({ reason }: UpstreamRefusal): 'cancelled' | 'misconfigured' | 'failed' =>
  reason === 'cancelled' || reason === 'misconfigured' ? reason : 'failed';

const CLIENT_REFUSED = 'a provider does not accept our client ID or secret';
const CLIENT_REMEDY =
  'compare client_id and client_secret_file of this provider in sign_in.providers with what is ' +
  'registered there; `npm run operator -- doctor` tries them';

/** The page where they began, with the ways there are. */
function chooseAgain({ interaction, target, confirms, links }: Purpose): string {
  if (interaction !== undefined) return `${ENDPOINT.interaction}/${interaction}?${CHOOSE}=yes`;
  if (confirms !== undefined || links !== undefined) return target;
  const query = new URLSearchParams({ return_to: target.split('?')[0] ?? target, [CHOOSE]: 'yes' });
  return `/login?${query}`;
}
