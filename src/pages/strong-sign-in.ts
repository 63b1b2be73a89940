/** `/profile/stronger-sign-in`: users add a stronger sign-in method than a password. */
import type { Context } from 'koa';
import type { SignInMethods } from '../accounts/sign-in-methods.ts';
import type { Text } from '../base/message.ts';
import { seeOther, visitorIn } from './page.ts';
import type { PageKit } from './page-kit.ts';
import { get, type Route } from './routes.ts';
import { anyStrongOf } from './sign-in/attempt.ts';
import type { EnabledMethods } from './sign-in/enabled-methods.ts';
import { STRONG_SIGN_IN } from './sign-in/sign-in-policy.ts';
import type { NamedProvider } from './sign-in/upstream-providers.ts';
import { type Moment, toMoment } from './words/moment.ts';

declare module './view-data.ts' {
  interface ViewData {
    readonly 'stronger-sign-in': {
      readonly notice: Text | undefined;
      readonly until: Moment;
      readonly isOver: boolean;
      /** True if the user has signed in with a provider, but this sign-in was not strong. */
      readonly isFromProvider: boolean;
      /** The names of the user's strong sign-in methods; empty if the user must add a strong method. */
      readonly held: Text;
      /** Undefined for a service without passkeys. */
      readonly addPasskeyUrl: string | undefined;
      readonly linkable: readonly NamedProvider[];
      readonly linkUrl: string;
    };
  }
}

export function strongSignInPage(parts: {
  readonly kit: PageKit;
  readonly signInMethods: Pick<SignInMethods, 'of'>;
  readonly enabled: Pick<EnabledMethods, 'upstream' | 'passkeys'>;
}): Route[] {
  const { kit, signInMethods, enabled } = parts;
  const { upstream, passkeys } = enabled;

  async function show(ctx: Context): Promise<void> {
    const visitor = visitorIn(ctx);
    const { standing } = visitor;
    if (standing.is === 'free') return seeOther(ctx, '/profile');
    // The form of the page can redirect to a provider.
    if (upstream.providers.length > 0) await kit.pageToClient(ctx, async () => {});
    const held = await signInMethods.of(visitor.account.id);
    await kit.render(ctx, 'stronger-sign-in', {
      notice: await kit.notices.take(ctx),
      until: toMoment(standing.until),
      isOver: standing.isOver,
      held: anyStrongOf(held),
      addPasskeyUrl: passkeys && '/profile/security/passkeys/new',
      linkable: upstream.strongMethods,
      isFromProvider: visitor.session.proofs.some(({ by }) => by === 'provider'),
      linkUrl: '/profile/security/ways',
    });
  }

  return [get(STRONG_SIGN_IN, kit.requireSignedIn, show)];
}
