/** When an exchange uses its code up: at the very end, where nothing but the answer is left. */
import { Provider } from 'oidc-provider';

/**
 * The engine uses a code up and then keeps the tokens for it. The other way round, a store that is
 * away or a crash in between costs the client nothing: the code is as good as it was. Of several
 * exchanges of one code all may keep tokens, but only the one that uses it up hands them out.
 */
export function useCodesUpLast(provider: Provider): void {
  const code = provider.AuthorizationCode.prototype;
  const refreshToken = provider.RefreshToken.prototype;
  const { consume } = code;
  const { save } = refreshToken;
  code.consume = async () => {};
  // Every exchange ends with a refresh token (`issueRefreshToken`).
  refreshToken.save = async function (...ttl) {
    const value = await save.apply(this, ttl);
    // Of the exchange under way; a refresh has none.
    const exchanged = Provider.ctx?.oidc.entities.AuthorizationCode;
    if (exchanged) await consume.call(exchanged);
    return value;
  };
  // Unless that is changed one day: then no exchange may succeed.
  provider.on('grant.success', ({ oidc: { entities } }) => {
    if (!entities.AuthorizationCode || entities.RefreshToken) return;
    throw new TypeError('an exchange without a refresh token leaves its code unused');
  });
}
