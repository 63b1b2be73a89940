/** `/interaction/:uid`: shows the page for which an authorization request waits, such as the consent page. */
import type { Context } from 'koa';
import { ENDPOINT } from '../../provider/endpoints.ts';
import { formOf } from '../../provider/form.ts';
import type { Interactions, PendingInteraction } from '../../provider/interactions.ts';
import { mayAct } from '../../provider/standings.ts';
import type { ErrorPage } from '../error-page/error-page.ts';
import { clientLanguage } from '../language.ts';
import { seeOther } from '../page.ts';
import type { PageKit } from '../page-kit.ts';
import { get, post, type Route } from '../routes.ts';
import type { SignInSteps } from '../sign-in/sign-in.ts';
import { STRONG_SIGN_IN } from '../sign-in/sign-in-policy.ts';
import type { UpstreamSignIns } from '../sign-in/upstream-providers.ts';
import type { WaitingSignIn } from '../sign-in/waiting-sign-in.ts';
import { type ConsentSteps, SHOWN_FIELD } from './consent.ts';

const PATH = `${ENDPOINT.interaction}/:uid`;

export function interactionPage(parts: {
  readonly kit: PageKit;
  readonly interactions: Pick<Interactions, 'find' | 'deny' | 'switchAccount'>;
  readonly errorPage: Pick<ErrorPage, 'requestIsOver' | 'formIsStale'>;
  readonly waiting: Pick<WaitingSignIn, 'begin'>;
  readonly signIn: Pick<SignInSteps, 'showFor' | 'submitFor'>;
  readonly consent: ConsentSteps;
  readonly upstream: Pick<UpstreamSignIns, 'askWho'>;
}): Route[] {
  const { kit, interactions, errorPage, waiting, signIn, consent, upstream } = parts;

  /** Returns undefined after it has answered a request for a used or expired interaction. */
  async function pending(ctx: Context): Promise<PendingInteraction | undefined> {
    const found = await interactions.find(ctx, String(ctx.params.uid));
    if ('language' in found) clientLanguage.set(ctx, found.language);
    if (await isStaleDecision(ctx, found)) return undefined;
    if (found.prompt === 'gone') await errorPage.requestIsOver(ctx, found.restart);
    else if (found.prompt === 'overtaken') seeOther(ctx, found.restart);
    else if (!(await isBlocked(ctx, found))) return found;
    return undefined;
  }

  /**
   * Redirects users who must add a stronger sign-in method before the authorization continues, and returns true. Users
   * who already have a strong method use it on the page of the interaction.
   */
  async function isBlocked(ctx: Context, pending: PendingInteraction): Promise<boolean> {
    if (pending.prompt === 'login' && (pending.isAgain || ctx.method !== 'GET')) return false;
    const { standing } = (await kit.signedInOf(ctx)) ?? {};
    if (!standing || mayAct(standing)) return false;
    if (pending.prompt === 'login' && standing.is === 'must use') return false;
    waiting.begin(ctx, pending.uid);
    seeOther(ctx, STRONG_SIGN_IN);
    return true;
  }

  /**
   * If the form with the user's decision was rendered for another user or session, sends an answer and returns true. A
   * sign-in form needs no such check, because it authenticates its sender.
   */
  async function isStaleDecision(ctx: Context, found: Awaited<ReturnType<Interactions['find']>>): Promise<boolean> {
    if (ctx.method !== 'POST' || !formOf(ctx).has(SHOWN_FIELD)) return false;
    const visitor = await kit.signedInOf(ctx);
    const formSession = kit.formSession(ctx, visitor);
    if (formSession === 'this session') return false;
    const restart = 'restart' in found ? found.restart : undefined;
    if (!visitor) {
      // The user has signed out, so restart the request, which asks for a sign-in and then for the decision.
      if (restart) seeOther(ctx, restart);
      return restart !== undefined;
    }
    const href = restart ?? ctx.path;
    const { name } = visitor.account;
    await errorPage.formIsStale(ctx, { name, isTheirs: formSession === 'another session', href });
    return true;
  }

  async function show(ctx: Context): Promise<void> {
    const interaction = await pending(ctx);
    if (interaction?.prompt === 'login') await signIn.showFor(ctx, interaction);
    if (interaction?.prompt === 'consent') await consent.show(ctx, interaction);
  }

  async function submit(ctx: Context): Promise<void> {
    const interaction = await pending(ctx);
    if (!interaction) return;
    if (interaction.prompt === 'login') return signIn.submitFor(ctx, interaction);
    const decision = formOf(ctx).get('decision');
    if (decision === 'approve') return consent.approve(ctx, interaction);
    // Show the page again if the form has no known `decision`.
    let next = ctx.path;
    if (decision === 'deny') next = await interactions.deny(ctx);
    if (decision === 'switch-account') {
      upstream.askWho(ctx);
      next = await interactions.switchAccount(ctx);
    }
    seeOther(ctx, next);
  }

  return [get(PATH, kit.pageToClient, show), post(PATH, kit.pageToClient, ...kit.form, submit)];
}
