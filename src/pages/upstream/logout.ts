/** `POST /login/<provider>/backchannel-logout`: a provider reports that a user signed out there. */
import type { Context } from 'koa';
import type { Logger } from 'pino';
import type { Activity } from '../../accounts/activity/activity.ts';
import type { SessionList } from '../../accounts/session-list.ts';
import type { Disconnect } from '../../authorizations/endings.ts';
import type { Answer, Step } from '../../base/answer.ts';
import type { AttemptLimit } from '../../base/attempt-limits.ts';
import { networkOf } from '../../base/network-address.ts';
import { refusePages } from '../../provider/cross-origin.ts';
import { formOf, readOAuthForm } from '../../provider/form.ts';
import { OAuthError } from '../../provider/oauth-error.ts';
import { UpstreamRefusal } from '../../upstream/failures.ts';
import { OLDEST_SECONDS } from '../../upstream/logout-token.ts';
import { CLOCK_TOLERANCE_SECONDS } from '../../upstream/token-times.ts';
import type { UpstreamProvider } from '../../upstream/upstream-provider.ts';
import type { UpstreamOutcomes } from '../sign-in/upstream-providers.ts';

/** A token's id is remembered for as long as the token could be replayed. */
const REMEMBERED_SECONDS = OLDEST_SECONDS + 2 * CLOCK_TOLERANCE_SECONDS;

/** Returns the steps by path, for requests that a provider's server sends. */
export function upstreamLogouts(parts: {
  readonly providers: readonly UpstreamProvider[];
  readonly log: Logger;
  readonly sessionList: Pick<SessionList, 'endAtProvider'>;
  readonly disconnect: Disconnect;
  readonly activity: Pick<Activity, 'record'>;
  /** Limits invalid logout tokens per network. */
  readonly failures: AttemptLimit;
  readonly outcomes: UpstreamOutcomes;
}): Readonly<Record<string, { readonly POST: readonly Step[] }>> {
  const { log, failures, outcomes, sessionList, activity } = parts;

  const logoutOf = (provider: UpstreamProvider) =>
    async function endSessions(ctx: Context): Promise<Answer> {
      const { id, label, issuer, endConnections: endsAll } = provider.settings;
      const { subject, sid, tokenId } = await checked(ctx, provider);
      const token = { id: tokenId, seconds: REMEMBERED_SECONDS };
      const ended = await sessionList.endAtProvider(
        { issuer, subject, sid, token },
        async (tx, { accounts, sessions }) => {
          for (const { id: accountId, isLinked } of accounts) {
            const details = { provider: id, provider_name: label, sessions };
            const entry = { action: 'signed_out_upstream', actor: 'service' } as const;
            await activity.record({ ...entry, accountId, details }, tx);
            if (endsAll && isLinked) await parts.disconnect({ accountId }, undefined, undefined, tx);
          }
        },
      );
      // Refuse a replayed token: it has already ended its sessions.
      if (!ended) throw refusal('this logout_token was used before');
      const { sessions } = ended;
      outcomes.cameFromUpstream(id, 'signed_out');
      log.info(
        { requestId: ctx.state.requestId, provider: id, sessions },
        'sessions ended by a sign-out at the provider',
      );
      // OpenID Connect Back-Channel Logout §2.8.
      return { body: {} };
    };

  async function checked(ctx: Context, provider: UpstreamProvider) {
    try {
      return await provider.checkLogout(formOf(ctx).get('logout_token') ?? '');
    } catch (error) {
      const { id } = provider.settings;
      outcomes.cameFromUpstream(id, 'sign_out_failed');
      const about = { requestId: ctx.state.requestId, provider: id, why: (error as Error).message };
      log.warn(about, 'a sign-out request of a provider failed');
      if (error instanceof UpstreamRefusal) {
        const over = await failures.count(networkOf(ctx.ip));
        if (over) ctx.set('Retry-After', String(over.seconds));
        throw over
          ? new OAuthError(429, 'invalid_request', 'too many wrong logout_tokens')
          : refusal('this logout_token is not valid');
      }
      throw new OAuthError(503, 'temporarily_unavailable', 'the provider does not answer');
    }
  }

  return Object.fromEntries(
    parts.providers.map((provider) => [
      `/login/${provider.settings.id}/backchannel-logout`,
      { POST: [refusePages, readOAuthForm, logoutOf(provider)] },
    ]),
  );
}

/** OpenID Connect Back-Channel Logout §2.8: the status is always 400. */
const refusal = (text: string): OAuthError => new OAuthError(400, 'invalid_request', text);
