/** `/interaction/:uid`: shows the step that an authorization request waits for. */
import type { Context } from 'koa';
import type { Interactions, PendingInteraction } from '../provider/interactions.ts';
import type { consentPage } from './consent.ts';
import type { ErrorPage } from './error-page.ts';
import { seeOther } from './page.ts';
import type { signInPage } from './sign-in.ts';

export interface InteractionParts {
  readonly interactions: Interactions;
  readonly signIn: ReturnType<typeof signInPage>;
  readonly consent: ReturnType<typeof consentPage>;
  readonly errorPage: ErrorPage;
}

export function interactionPage({ interactions, signIn, consent, errorPage }: InteractionParts) {
  /** A second click, a reload, the back button and an expired request get a calm page. */
  async function pending(ctx: Context): Promise<PendingInteraction | undefined> {
    const found = await interactions.find(ctx, String(ctx.params.uid));
    if (found.prompt === 'gone') await errorPage.requestIsOver(ctx, found.restart);
    else if (found.prompt === 'overtaken') seeOther(ctx, found.restart);
    else return found;
    return undefined;
  }

  return {
    async show(ctx: Context): Promise<void> {
      const interaction = await pending(ctx);
      if (interaction?.prompt === 'login') await signIn.showFor(ctx, interaction);
      if (interaction?.prompt === 'consent') await consent.show(ctx, interaction);
    },

    async submit(ctx: Context): Promise<void> {
      const interaction = await pending(ctx);
      if (interaction?.prompt === 'login') await signIn.submitFor(ctx, interaction);
      if (interaction?.prompt === 'consent') await consent.submit(ctx, interaction);
    },
  };
}
