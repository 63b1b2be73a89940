/** How a refused authorization request goes back to its client: in the query, with a page about it. */
import type Provider from 'oidc-provider';
import type { KoaContextWithOIDC } from 'oidc-provider';
import { errorBody } from './oauth-error.ts';

/** No client may ask for it: `responseModeAllowed` knows `query` only. */
const REFUSAL = 'refusal';

/**
 * The engine would answer in the fragment whoever asked for a token there, and leave out
 * `error_uri` (RFC 6749 §4.1.2.1).
 */
export function installRefusals(provider: Provider): void {
  provider.registerResponseMode(REFUSAL, (ctx, redirectUri, payload) => {
    const { error, error_description: description, ...others } = payload as Refusal;
    const uri = new URL(redirectUri);
    const told = { ...errorBody(provider.issuer, error, description ?? error), ...others };
    for (const [name, value] of Object.entries(told)) uri.searchParams.set(name, value);
    ctx.status = 303;
    ctx.redirect(uri.href);
  });
  // Reported before the engine chooses the mode.
  provider.on('authorization.error', ({ oidc }: KoaContextWithOIDC) => {
    if (oidc.params) oidc.params.response_mode = REFUSAL;
  });
}

type Refusal = Readonly<Record<string, string>> & {
  readonly error: string;
  readonly error_description?: string;
};
