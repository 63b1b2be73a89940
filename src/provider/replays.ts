/** Codes and refresh tokens that were presented again: why their grants ended, for whoever asks. */
import { type KoaContextWithOIDC, Provider } from 'oidc-provider';
import type { Revocations } from '../accounts/revocations.ts';
import type { ProviderOutcomes } from './outcomes.ts';

/**
 * To be called once the grant is revoked, at the token endpoint.
 *
 * @param ctx of the request; else that of the request under way.
 */
export type NoteReplay = (grantId: string, ctx?: KoaContextWithOIDC) => void;

export const notesReplays =
  (
    revocations: Pick<Revocations, 'note'>,
    outcomes: Pick<ProviderOutcomes, 'grantReplayed'>,
  ): NoteReplay =>
  (grantId, ctx = Provider.ctx) => {
    if (!ctx) return;
    const isCode = ctx.oidc.params?.grant_type === 'authorization_code';
    outcomes.grantReplayed(isCode ? 'code' : 'refresh_token');
    revocations.note({
      grantId,
      cause: isCode ? 'code_replayed' : 'refresh_token_replayed',
      actor: 'service',
      origin: { address: ctx.ip, browser: ctx.get('user-agent') },
    });
  };
